/* toast.js - the short notice that something was done. */
export function toast(text) {
    const el = document.getElementById("toast");
    el.textContent = text;
    clearTimeout(toast.timer);
    toast.timer = setTimeout(() => { el.textContent = ""; }, 6000);
}
