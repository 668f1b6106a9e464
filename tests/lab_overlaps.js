// What stands over something else, leaves its picture or is wider than its place, on a page of the lab.
() => {
  const found = [], roots = [document];
  for (const root of roots) for (const each of root.querySelectorAll('*')) if (each.shadowRoot) roots.push(each.shadowRoot);
  const hit = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left))
    * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  const area = (a) => Math.max(1, a.width * a.height);
  for (const root of roots) for (const body of root.querySelectorAll('.exhibit')) {
    const parts = ['.stage', '.side', 'footer', 'h2'].map((name) => body.querySelector(name)).filter(Boolean);
    parts.forEach((one, i) => parts.slice(i + 1).forEach((other) => {
      if (hit(one.getBoundingClientRect(), other.getBoundingClientRect()) > 4) found.push(`${body.id}: ${one.className || one.tagName} over ${other.className || other.tagName}`);
    }));
    for (const svg of body.querySelectorAll('svg.quoin')) {
      const rim = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll('text')].map((t) => [t.textContent, t.getBoundingClientRect()]);
      for (const [words, box] of texts) {
        if (box.width && hit(box, rim) < 0.97 * area(box)) found.push(`${body.id}: '${words}' leaves the picture`);
      }
      texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
        if (a.width && b.width && hit(a, b) > 0.25 * Math.min(area(a), area(b))) found.push(`${body.id}: '${one}' over '${other}'`);
      }));
    }
  }
  for (const root of roots) for (const each of root.querySelectorAll('.quoin-lab')) {
    if (each.tagName !== 'DIALOG' && each.scrollWidth > each.clientWidth + 1) found.push(`${each.id || each.className} is wider than its place`);
  }
  if (document.documentElement.scrollWidth > window.innerWidth + 1) found.push('the page scrolls sideways');
  return found;
}
