/* toast.js - the short notice that something was done. A popover: it lies above dialogs, too. */
export function toast(text) {
    const el = document.getElementById("toast");
    if (el.matches(":popover-open")) el.hidePopover();
    el.textContent = text;
    el.showPopover();
    clearTimeout(toast.timer);
    toast.timer = setTimeout(() => {
        el.textContent = "";
        el.hidePopover();
    }, 6000);
}
