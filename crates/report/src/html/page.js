(() => {
  const d = document;
  const button = (text, act) => {
    const b = d.createElement('button');
    b.type = 'button';
    b.textContent = text;
    b.addEventListener('click', () => act(b));
    return b;
  };
  const copy = async (text, node) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(node);
      d.execCommand('copy');
    }
  };
  for (const pre of d.querySelectorAll('pre.copy')) {
    const text = pre.textContent;
    pre.before(button('Copy', async (b) => {
      await copy(text, pre);
      b.textContent = 'Copied';
      setTimeout(() => { b.textContent = 'Copy'; }, 2000);
    }));
  }
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell ? cell.dataset.k || cell.textContent : '';
  };
  for (const table of d.querySelectorAll('table.sort')) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const name = head.textContent;
      head.textContent = '';
      head.append(button(name, () => {
        const up = head.getAttribute('aria-sort') !== 'ascending';
        heads.forEach((other) => other.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        const order = new Intl.Collator('en', { numeric: true });
        const rows = [...body.rows].sort((a, b) => order.compare(value(a, column), value(b, column)));
        body.append(...(up ? rows : rows.reverse()));
      }));
    });
    const input = d.createElement('input');
    input.type = 'search';
    const label = d.createElement('label');
    label.className = 'filter';
    label.append('Show rows with ', input);
    input.addEventListener('input', () => {
      const wanted = input.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.parentNode.before(label);
  }
})();
