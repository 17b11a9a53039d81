/* dom.js - elements made by h(), and morph(), which turns what is shown into what should be shown.
 * Every screen is a function from state to elements; morph changes only what differs, so focus,
 * selection and scrolling stay. Text is always text: nothing here parses HTML. */

const EVENTS = ["onclick", "oninput", "onchange", "onsubmit", "onkeydown", "onclose", "onpointerenter", "onpointerleave"];
const SVG = "http://www.w3.org/2000/svg";

function assign(el, name, value) {
    if (value === null || value === undefined || value === false) return;
    if (EVENTS.includes(name)) el[name] = value;
    else if (name === "style") for (const [k, v] of Object.entries(value)) el.style.setProperty(k, v);
    else el.setAttribute(name, value === true ? "" : value);
}

function append(el, kid) {
    if (Array.isArray(kid)) kid.forEach((k) => append(el, k));
    else if (kid instanceof Node) el.append(kid);
    else if (kid !== null && kid !== undefined && kid !== false) el.append(String(kid));
}

function fill(el, spec, props, kids) {
    const classes = spec.split(".").slice(1).filter(Boolean);
    if (classes.length) el.setAttribute("class", classes.join(" "));
    for (const [name, value] of Object.entries(props || {})) assign(el, name, value);
    append(el, kids);
    return el;
}

/* h("td.num", { title: "..." }, "text", element, [more]) */
export function h(spec, props, ...kids) {
    return fill(document.createElement(spec.split(".")[0]), spec, props, kids);
}

/* Text of a fixed width of letters. Where there is no room for all, the end of `front` gives way, and `rest` stays. */
export function elidable(spec, props, front, rest) {
    const tail = h("span", {}, rest);
    return h(`${spec}.elidable`, { ...props, style: { "--rest": `${[...tail.textContent].length}ch` } }, h("span.front", {}, front), ...tail.childNodes);
}

export function svg(spec, props, ...kids) {
    return fill(document.createElementNS(SVG, spec.split(".")[0]), spec, props, kids);
}

function morphAttributes(from, to) {
    for (const { name } of [...from.attributes]) {
        if (name !== "style" && !to.hasAttribute(name)) from.removeAttribute(name);
    }
    for (const { name, value } of to.attributes) {
        if (name !== "style" && from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    /* Through the object model: a style attribute is refused by the content security policy. */
    if (from.style && from.style.cssText !== to.style.cssText) from.style.cssText = to.style.cssText;
    for (const e of EVENTS) if (from[e] !== to[e]) from[e] = to[e];
    /* Once somebody has typed, the attribute no longer shows. */
    if (from.nodeName === "INPUT" && to.hasAttribute("value") && document.activeElement !== from) from.value = to.value;
}

const keyOf = (node) => (node.nodeType === 1 ? node.getAttribute("data-key") : null);

function morphChildren(from, to) {
    const wanted = [...to.childNodes];
    const keys = new Set(wanted.map(keyOf).filter(Boolean));
    const kept = new Map();
    for (const node of [...from.childNodes]) {
        const key = keyOf(node);
        if (!key) continue;
        if (keys.has(key)) kept.set(key, node);
        else node.remove();
    }
    let at = from.firstChild;
    for (const want of wanted) {
        const key = keyOf(want);
        const have = key ? kept.get(key) : at && !keyOf(at) ? at : null;
        if (!have || have.nodeName !== want.nodeName) {
            from.insertBefore(want, at);
            continue;
        }
        if (have === at) at = at.nextSibling;
        else from.insertBefore(have, at);
        morph(have, want);
    }
    while (at) {
        const next = at.nextSibling;
        at.remove();
        at = next;
    }
}

export function morph(from, to) {
    if (from.nodeType !== 1) {
        if (from.data !== to.data) from.data = to.data;
        return;
    }
    morphAttributes(from, to);
    /* data-own: its children are somebody else's. */
    if (!from.hasAttribute("data-own")) morphChildren(from, to);
}

/* Shows `tree` as the only child of `place`. */
export function render(place, tree) {
    const old = place.firstElementChild;
    if (old && old.nodeName === tree.nodeName && keyOf(old) === keyOf(tree)) morph(old, tree);
    else place.replaceChildren(tree);
}
