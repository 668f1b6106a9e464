// Opened from a file, a page may start no worker, and the search is one. Here it runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const scope = frame.contentWindow;
      const tell = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      scope.postMessage = (data) => setTimeout(tell, 0, data);
      this.ready = new Promise((resolve) => {
        const script = scope.document.createElement("script");
        script.src = url;
        script.onload = () => resolve(scope);
        scope.document.body.append(script);
      });
    }
    postMessage(data) {
      this.ready.then((scope) => scope.dispatchEvent(new scope.MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
