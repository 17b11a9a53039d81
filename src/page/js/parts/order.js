/* order.js - rows in the order of a column: a click on its title, or the address (?sort=held, or -held from
 * the largest down). A column has `sort`, the value of an item, and `down` if its largest come first. */
import { asked, show } from "../lib/address.js";

/* -1, 0, 1; nothing sorts last in either direction. */
export function compare(a, b, down) {
    if (a === b) return 0;
    if (a === null || a === undefined) return 1;
    if (b === null || b === undefined) return -1;
    return (a < b ? -1 : 1) * (down ? -1 : 1);
}

/* {by, down}; null: no column. */
export function orderOf(columns) {
    const text = asked("sort");
    const by = text.replace(/^-/, "");
    return columns.some((c) => c.sort && c.id === by) ? { by, down: text.startsWith("-") } : null;
}

/* `usual` decides between equals, and is the order without a column. */
export function arrange(items, columns, usual) {
    const order = orderOf(columns);
    const value = order && columns.find((c) => c.id === order.by).sort;
    return items.sort((a, b) => (order && compare(value(a), value(b), order.down)) || usual(a, b));
}

export function sortBy(columns, id) {
    const order = orderOf(columns);
    const down = order?.by === id ? !order.down : Boolean(columns.find((c) => c.id === id).down);
    show({ sort: `${down ? "-" : ""}${id}` });
}
