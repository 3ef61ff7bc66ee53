// Draws the charts of the report with uPlot. Each section has its numbers in a script element of type application/json, and its charts
// are empty boxes that are filled when they come near the window, before printing, or when report.drawAll is called.
(() => {
  'use strict';

  const PRINT_WIDTH = 336; // pixels, as in page.css
  const root = document.documentElement;
  const sections = new Map(); // by id of the element
  const plots = new Map(); // by box
  let printing = false;

  // Colours are named in the style sheet and differ by theme. uPlot asks for them each time it draws.
  let colours = new Map();
  function colour(name) {
    if (!colours.has(name)) colours.set(name, getComputedStyle(root).getPropertyValue(name).trim());
    return colours.get(name);
  }
  const keyColour = key => colour('--s' + key.slot);
  const faint = hex => hex + '26'; // 15 % of it

  const family = getComputedStyle(document.body).fontFamily;
  const FONT = '12px ' + family;
  const measurer = document.createElement('canvas').getContext('2d');
  function textWidth(text) {
    measurer.font = FONT;
    return measurer.measureText(text).width;
  }

  const number = new Intl.NumberFormat('en', {maximumSignificantDigits: 4});
  const format = v => v == null ? '' : number.format(v);

  function sectionOf(box) {
    const id = box.closest('section').id;
    if (!sections.has(id)) {
      const numbers = JSON.parse(document.getElementById(id + '-numbers').textContent);
      sections.set(id, {...numbers, hidden: new Set(), sync: uPlot.sync(id)});
    }
    return sections.get(id);
  }

  // Axes.

  function axis(more) {
    return {
      stroke: () => colour('--quiet'), font: FONT, labelFont: FONT, labelSize: 18, labelGap: 0, gap: 6,
      grid: {stroke: () => colour('--grid'), width: 1}, ticks: {stroke: () => colour('--grid'), width: 1, size: 5},
      ...more,
    };
  }

  // The axis of values is as wide as its longest text.
  const valueSize = (u, texts) => Math.ceil(Math.max(16, ...(texts || []).map(t => textWidth(t)))) + 16;

  function decades(min, max, room) {
    const ticks = [];
    for (const factors of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1]]) {
      ticks.length = 0;
      for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
        for (const factor of factors) {
          const tick = Number((factor * 10 ** power).toPrecision(2));
          if (tick >= min * 0.999 && tick <= max * 1.001) ticks.push(tick);
        }
      }
      if (ticks.length <= room) break;
    }
    return ticks;
  }

  const room = u => Math.max(2, u.height / 30);
  const wholeSteps = Array.from({length: 13}, (_, power) => [1, 2, 5].map(factor => factor * 10 ** power)).flat();

  // Counts begin at 0. On a logarithmic axis the way from 0 to 1 is as long as from 1 to about 2.7 (an inverse hyperbolic sine).
  function countScale(log) {
    return {distr: log ? 4 : 1, range: (u, min, max) => [0, log ? Math.max(2, max || 0) * 1.3 : Math.max(1, max || 0) * 1.08]};
  }

  function countAxis(spec) {
    const splits = spec.log ? (u, i, min, max) => [0, ...decades(1, max, room(u)).filter(Number.isInteger)] : null;
    return axis({label: spec.y, incrs: wholeSteps, space: 32, size: valueSize, values: (u, ticks) => ticks.map(format), ...(splits && {splits, filter: (u, ticks) => ticks})});
  }

  // Lines.

  function lineSeries(section, line, more) {
    const key = section.keys[line.key];
    return {
      label: key.name, show: !section.hidden.has(line.key), stroke: () => keyColour(key), width: key.ours ? 3 : 1.75, dash: key.dash, cap: 'butt', ...more,
    };
  }

  // Our own lines are drawn last, above the others.
  function oursLast(section, spec) {
    return spec.lines.slice().sort((a, b) => section.keys[a.key].ours - section.keys[b.key].ours);
  }

  // The box beside the cursor that reads the values out. All of it is text.
  function tip(section, lines, heading, unit) {
    const box = document.createElement('div');
    box.className = 'tip';
    const add = (parent, name, text) => {
      const element = parent.appendChild(document.createElement(name));
      if (text != null) element.textContent = text;
      return element;
    };
    const fill = (u, at) => {
      box.replaceChildren();
      add(box, 'b', heading(u, at));
      lines.forEach((line, i) => {
        const value = u.data[i + 1][at];
        if (!u.series[i + 1].show || value == null) return;
        const row = add(box, 'div');
        add(row, 'i').style.background = keyColour(section.keys[line.key]);
        add(row, 'span', section.keys[line.key].name);
        add(row, 'em', format(value) + unit);
      });
    };
    return {hooks: {
      init: u => u.over.append(box),
      setCursor: u => {
        const {idx, left} = u.cursor;
        const shown = idx != null && left >= 0 && u.over.matches(':hover');
        box.style.display = shown ? 'block' : 'none';
        if (!shown) return;
        fill(u, idx);
        const onLeft = left > u.over.clientWidth / 2;
        box.style.left = onLeft ? 'auto' : left + 12 + 'px';
        box.style.right = onLeft ? u.over.clientWidth - left + 12 + 'px' : 'auto';
      },
    }};
  }

  // A line that rises but a few times is hard to see where it does: there it has points.
  const FEW = 40;
  const MANY = 120;
  function peaks(key) {
    return {
      show: true, size: key.ours ? 8 : 6, width: 2, fill: () => colour('--card'),
      filter: (u, series, shown) => {
        const ys = u.data[series];
        const risen = [];
        for (let i = 0; i < ys.length - 1 && risen.length <= FEW; i++) if (ys[i] > 0) risen.push(i);
        return risen.length <= FEW ? risen : [];
      },
    };
  }

  function timePlot(section, spec) {
    const lines = oursLast(section, spec);
    const longest = Math.max(...lines.map(line => line.step * line.values.length));
    const unit = longest >= 5000 ? {name: 's', ms: 1000} : {name: 'ms', ms: 1};
    const data = uPlot.join(lines.map(line => {
      const x = line.values.map((_, i) => i * line.step / unit.ms);
      // A step lasts until the next one begins, the last one too.
      return [[...x, line.values.length * line.step / unit.ms], [...line.values, line.values.at(-1)]];
    }));
    const end = longest / unit.ms;
    // Many steps lie so close that their corners are only noise.
    const paths = Math.max(...lines.map(line => line.values.length)) > MANY ? uPlot.paths.linear() : uPlot.paths.stepped({align: 1});
    return {data, options: {
      scales: {x: {time: false, range: (u, min, max) => min === 0 && max === end ? [-end * 0.02, end * 1.02] : [min, max]}, y: countScale(spec.log)},
      series: [{}, ...lines.map(line => lineSeries(section, line, {
        paths, points: spec.level ? {show: false} : peaks(section.keys[line.key]), fill: section.keys[line.key].ours ? () => faint(colour('--s0')) : undefined,
      }))],
      axes: [axis({label: 'time since the start, ' + unit.name, size: 30, space: 60, values: (u, ticks) => ticks.map(format)}), countAxis(spec)],
      cursor: {sync: {key: section.sync.key, setSeries: false}, y: false, points: {size: 6}, drag: {x: true, y: false}},
      plugins: [tip(section, lines, (u, at) => format(u.data[0][at]) + ' ' + unit.name, '')],
    }};
  }

  function ranksPlot(section, spec) {
    const lines = oursLast(section, spec);
    const places = spec.ranks.map((_, i) => i);
    return {data: [places, ...lines.map(line => line.values)], options: {
      scales: {
        x: {time: false, range: () => [-0.2, places.length - 0.8]},
        y: {distr: 3, range: (u, min, max) => min == null ? [1, 10] : [min / 1.25, Math.max(max * 1.25, min * 3)]},
      },
      series: [{}, ...lines.map(line => lineSeries(section, line, {points: {show: true, size: section.keys[line.key].ours ? 9 : 6, fill: () => colour('--card'), width: 2}, spanGaps: true}))],
      axes: [
        axis({label: spec.x, size: 30, splits: () => places, values: () => spec.ranks, grid: {show: false}}),
        axis({label: spec.y, size: valueSize, splits: (u, i, min, max) => decades(min, max, room(u)), filter: (u, ticks) => ticks, values: (u, ticks) => ticks.map(format)}),
      ],
      cursor: {y: false, points: {size: 6}, drag: {x: false, y: false}},
      plugins: [tip(section, lines, (u, at) => spec.ranks[at], ' ms')],
    }};
  }

  // Bars lie: names are read on the left, values at the end of each bar.

  // fold breaks a text into lines that are at most so wide, three at most.
  function fold(text, width) {
    const lines = [''];
    for (const word of text.split(' ')) {
      const longer = lines.at(-1) ? lines.at(-1) + ' ' + word : word;
      if (textWidth(longer) <= width || !lines.at(-1)) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines.slice(0, 3).map((line, i) => clip(i === 2 && lines.length > 3 ? line + '…' : line, width)).join('\n');
  }

  function clip(text, width) {
    if (textWidth(text) <= width) return text;
    let end = text.length - 1;
    while (end > 1 && textWidth(text.slice(0, end) + '…') > width) end--;
    return text.slice(0, end) + '…';
  }

  function barsPlot(section, spec) {
    const places = spec.bars.map((_, i) => i);
    const names = u => spec.bars.map(bar => fold(bar.label, u.width * 0.38));
    const nameSize = u => Math.ceil(Math.max(...names(u).flatMap(name => name.split('\n')).map(textWidth))) + 12;
    const textRoom = Math.ceil(Math.max(...spec.bars.map(bar => textWidth(bar.text)))) + 14;
    const lengths = spec.bars.map(bar => Math.min(bar.value, spec.limit || Infinity));
    const longest = Math.max(spec.mark || 0, ...lengths) || 1;
    const bars = uPlot.paths.bars({
      size: [0.62, 26], radius: 0.12,
      disp: {fill: {unit: 3, values: () => spec.bars.map(bar => keyColour(section.keys[bar.key]))}},
    });
    const ends = u => {
      const ctx = u.ctx;
      const ratio = devicePixelRatio || 1;
      ctx.save();
      if (spec.mark) {
        const x = Math.round(u.valToPos(spec.mark, 'y', true));
        ctx.strokeStyle = colour('--ink');
        ctx.lineWidth = ratio;
        ctx.setLineDash([4 * ratio, 3 * ratio]);
        ctx.beginPath();
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x, u.bbox.top + u.bbox.height);
        ctx.stroke();
      }
      ctx.font = 12 * ratio + 'px ' + family;
      ctx.fillStyle = colour('--ink');
      ctx.textAlign = 'left';
      ctx.textBaseline = 'middle';
      ctx.setLineDash([]);
      ctx.lineWidth = 4 * ratio;
      ctx.strokeStyle = colour('--card'); // around the text, where it crosses the mark
      spec.bars.forEach((bar, i) => {
        const at = [u.valToPos(lengths[i], 'y', true) + 6 * ratio, u.valToPos(i, 'x', true)];
        ctx.strokeText(bar.text, ...at);
        ctx.fillText(bar.text, ...at);
      });
      ctx.restore();
    };
    return {data: [places, lengths], options: {
      padding: [4, textRoom, 0, 0],
      scales: {x: {time: false, ori: 1, dir: -1, range: () => [-0.5, places.length - 0.5]}, y: {ori: 0, dir: 1, range: () => [0, longest]}},
      series: [{}, {paths: bars, width: 0, fill: () => colour('--s0'), points: {show: false}}],
      axes: [
        axis({scale: 'x', side: 3, size: nameSize, stroke: () => colour('--ink'), splits: () => places, values: names, grid: {show: false}, ticks: {show: false}}),
        axis({scale: 'y', side: 2, label: spec.y, size: 30, space: 70, incrs: wholeSteps, values: (u, ticks) => ticks.map(format)}),
      ],
      cursor: {show: false},
      hooks: {draw: [ends]},
    }};
  }

  // Drawing.

  const makers = {time: timePlot, ranks: ranksPlot, bars: barsPlot};
  const widthOf = box => printing ? PRINT_WIDTH : box.clientWidth;
  const heightOf = box => Number(box.dataset.height);

  function draw(box) {
    if (plots.has(box) || !widthOf(box)) return;
    const section = sectionOf(box);
    const spec = section.charts[Number(box.id.split('-').at(-1))];
    const {data, options} = makers[spec.kind](section, spec);
    const plot = new uPlot({width: widthOf(box), height: heightOf(box), legend: {show: false}, padding: [10, 12, 0, 0], ...options}, data, box);
    plots.set(box, plot);
    plot.spec = spec;
  }

  function drawAll() {
    boxes.forEach(draw);
    return plots.size;
  }

  function repaint() {
    colours = new Map();
    plots.forEach((plot, box) => plot.setSize({width: widthOf(box), height: heightOf(box)}));
  }

  function print(on) {
    printing = on;
    root.toggleAttribute('data-print', on);
    repaint();
    if (on) drawAll();
  }

  // A button shows or hides one strategy in the charts of its section.
  function toggle(button) {
    const show = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', show);
    const key = Number(button.dataset.key);
    const section = sectionOf(button);
    if (show) section.hidden.delete(key);
    else section.hidden.add(key);
    plots.forEach(plot => {
      if (!section.charts.includes(plot.spec) || !plot.spec.lines) return;
      const line = oursLast(section, plot.spec).findIndex(candidate => candidate.key === key);
      if (line >= 0) plot.setSeries(line + 1, {show});
    });
  }

  const boxes = [...document.querySelectorAll('.chart')];
  const near = new IntersectionObserver(entries => entries.forEach(entry => {
    if (!entry.isIntersecting) return;
    near.unobserve(entry.target);
    draw(entry.target);
  }), {rootMargin: '500px 0px'});
  const resized = new ResizeObserver(entries => entries.forEach(({target}) => {
    const plot = plots.get(target);
    if (plot && !printing && target.clientWidth && plot.width !== target.clientWidth) plot.setSize({width: target.clientWidth, height: heightOf(target)});
  }));
  boxes.forEach(box => {
    box.style.height = heightOf(box) + 'px';
    near.observe(box);
    resized.observe(box);
  });
  document.querySelectorAll('.legend button').forEach(button => button.addEventListener('click', () => toggle(button)));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
  window.report = {drawAll};
})();
