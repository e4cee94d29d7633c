"""tape.draw(): the graph as SVG, and as a page that a browser runs."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

import gradtape as tf
from gradtape._src.debug.layout import layered

SVG = "{http://www.w3.org/2000/svg}"


def boxes(svg):
    """The texts of the boxes, by their number."""
    found = {}
    for g in ET.fromstring(svg).iter(SVG + "g"):
        if "node" in g.get("class", "").split():
            found.setdefault(g.get("data-number"), []).append(
                (g.get("class"), [t.text for t in g.iter(SVG + "text")])
            )
    return found


def recorded():
    x, w = tf.constant([[1.0, 2.0]]), tf.Variable([[1.0], [-3.0]], name="kernel")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(x @ w)
        other = tf.exp(x)
        loss = tf.reduce_sum(y)
    return tape, loss, other, w


def test_boxes_and_edges():
    tape, loss, other, _ = recorded()
    svg = tape.draw()
    texts = [text for same in boxes(svg).values() for _, text in same]
    for wanted in (["kernel", "float32[2,1]"], ["watched tensor", "float32[1,2]"], ["matmul", "float32[1,1]"],
                   ["exp", "float32[1,2]"], ["sum", "float32[]"]):  # fmt: skip
        assert wanted in texts
    assert svg.count('class="edge"') == 5


def test_only_records_that_lead_to_the_target():
    tape, loss, other, w = recorded()
    svg = tape.draw(loss)
    assert not any("exp" in text for same in boxes(svg).values() for _, text in same)
    assert svg.count('class="edge"') == 4
    assert "gradient: norm 1" in svg
    assert tape.gradient(loss, w) is not None  # the tape is not used up


def test_the_text_of_a_box():
    with tf.debug.lines():
        w = tf.Variable([1.0, -3.0], name="weights")
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.exp(w))  # this line
        svg = tape.draw(y)
    title = next(
        t.text for t in ET.fromstring(svg).iter(SVG + "title") if t.text.startswith("operation: exp")
    )
    assert "values: 0.0497871 to 2.71828, mean 1.38403" in title
    assert "gradient: norm 1.41421" in title
    assert "source: y = tf.reduce_sum(tf.exp(w))  # this line" in title
    assert "test_draw.py:" in title
    assert "keeps: 64 B in 1 value" in title


def test_bad_values_are_marked():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sqrt(tf.math.log(x)))
    marked = [
        text[0] for same in boxes(tape.draw(y)).values() for classes, text in same if "bad" in classes.split()
    ]
    assert "sqrt" in marked


def test_variable_used_far_away_is_drawn_again():
    w, x = tf.Variable(tf.ones([2, 2]), name="w"), tf.ones([1, 2])
    with tf.GradientTape() as tape:
        for _ in range(30):
            x = tf.tanh(x @ w)
    found = boxes(tape.draw(x))
    copies = next(same for same in found.values() if same[0][1][0] == "w")
    assert len(copies) > 20
    assert sum("again" in classes for classes, _ in copies) == len(copies) - 1


def test_custom_gradients_functions_many_results_and_names_to_escape():
    @tf.custom_gradient
    def f(x):
        return x * 1.0, lambda g: g

    @tf.function
    def g(x):
        return tf.exp(x) * x

    v = tf.Variable([1.0, 2.0], name='a<b>&"c')
    with tf.GradientTape() as tape:
        y = g(f(v))
        a, b = tf.split(y, 2)
        z = tf.reduce_sum(a * b)
    svg = tape.draw(z)
    texts = [text[0] for same in boxes(svg).values() for _, text in same]
    assert "function" in texts and "custom gradient" in texts and 'a<b>&"c' in texts


def test_files(tmp_path):
    tape, loss, _, _ = recorded()
    assert tape.draw(loss, tmp_path / "a.svg") == str(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    with pytest.raises(ValueError, match=r"\.svg or \.html"):
        tape.draw(loss, tmp_path / "a.pdf")


def test_nothing_recorded():
    with tf.GradientTape() as tape:
        pass
    assert "Nothing is recorded" in tape.draw()
    with pytest.raises(ValueError, match="not on the tape"):
        tape.draw(tf.constant(1.0))


def test_large_graph_is_quick():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * 1.0
        early = y
        for i in range(1500):
            y = tf.sin(y) + (early if i % 100 == 0 else 1.0)
    assert tape.draw().count("<rect") > 3000


def test_of_a_huge_tape_the_end_is_drawn():
    x, unused = tf.Variable(1.0, name="x"), tf.Variable(1.0, name="unused")
    with tf.GradientTape(persistent=True) as tape:
        y = unused * 1.0
        early = y
        for _ in range(10_000):
            y = tf.sin(y)
        y = y * x
    drawing = tape.draw(y)
    assert drawing.count("<rect") == 4001 and len(drawing) < 4_000_000
    assert ">x<" in drawing and ">unused<" not in drawing
    assert "4,000 operations, 1 source (6,003 earlier ones are left out)" in repr(drawing)
    assert repr(tape.draw(early)).startswith("<drawing of 1 operation, 1 source;")


def test_layout_keeps_boxes_apart():
    sizes = {i: (40.0 + i % 5 * 20, 30.0) for i in range(60)}
    edges = [(i, j) for j in range(60) for i in range(j) if (i * 7 + j * 3) % 17 == 0]
    places = layered(sizes, edges).places
    for a, (x, y) in places.items():
        for b, (u, v) in places.items():
            if a < b and y == v:
                assert abs(x - u) >= (sizes[a][0] + sizes[b][0]) / 2
    for a, b in edges:
        assert places[a][1] < places[b][1]  # edges point down


# ---- the page -------------------------------------------------------------------------------------


def test_page_needs_nothing_else(tmp_path):
    tape, loss, _, _ = recorded()
    path = tape.draw(loss, tmp_path / "tape.html")
    text = (tmp_path / "tape.html").read_text()
    assert path == str(tmp_path / "tape.html")
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert not re.search("https?://", text)


def chromium(*arguments):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("Chromium is not installed")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,800",
    ]
    command = [program, *options, *arguments]
    try:
        return subprocess.run(command, capture_output=True, timeout=120, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):  # a busy machine: once more
        return subprocess.run(command, capture_output=True, timeout=300, check=True)


def test_page_in_a_browser(tmp_path):
    x = tf.Variable([1.0, 2.0], name="</script><b>x")
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.tanh(x))
    tape.draw(y, tmp_path / "tape.html")
    number = next(r[0] for r in tape._records() if r[1] is not None and r[1].op_name == "tanh")
    address = f"{(tmp_path / 'tape.html').as_uri()}#{number}"
    page = chromium(f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", address).stdout.decode()
    # The script ran: the graph was fitted into the window, and the op of the address is explained.
    assert re.search(r'<g transform="translate\([-\d. ]+\) scale\([\d.]+\)"', page)
    panel = page[page.index('<div class="told"') : page.index("<script>")]
    assert ">tanh</b>" in panel
    assert "0.761594 to 0.964028, mean 0.862811" in panel
    assert "comes from" in panel and "&lt;/script&gt;" in panel


_HAND = r"""<script>
const at = (x, y) => ({bubbles: true, cancelable: true, clientX: x, clientY: y});
const [stage, told, search] = ["stage", "told", "bar input"].map(name => document.querySelector("." + name));
const placed = () => document.querySelector("svg > g").getAttribute("transform").match(/-?[\d.]+/g).join();
const count = name => document.querySelectorAll("." + name).length;
const box = document.querySelector('.node[data-number="NUMBER"] rect');
box.parentNode.dispatchEvent(new PointerEvent("pointerenter", at(5, 5)));
document.title = told.querySelector("b").textContent;
box.parentNode.dispatchEvent(new PointerEvent("pointerleave", at(5, 5)));
document.title += "," + told.querySelector("b").textContent.replaceAll(",", "");
box.dispatchEvent(new PointerEvent("pointerdown", at(5, 5)));
box.dispatchEvent(new PointerEvent("pointerup", at(5, 5)));
document.title += "," + [told.querySelector("b").textContent, count("up"), count("down"), count("faded"), placed()];
stage.dispatchEvent(new WheelEvent("wheel", {...at(100, 100), deltaY: -400}));
document.title += "," + placed();
stage.dispatchEvent(new PointerEvent("pointerdown", at(0, 0)));
stage.dispatchEvent(new PointerEvent("pointermove", at(30, 0)));
stage.dispatchEvent(new PointerEvent("pointerup", at(30, 0)));
document.title += "," + placed() + "," + told.querySelector("b").textContent;
search.value = "tanh"; search.oninput();
document.title += "," + count("found");
</script>"""


def test_hover_click_zoom_drag_and_search(tmp_path):
    tape, _loss, _other, _ = recorded()
    tape.draw(file=tmp_path / "tape.html")
    number = next(r[0] for r in tape._records() if r[1] is not None and r[1].op_name == "matmul")
    page = tmp_path / "tape.html"
    page.write_text(page.read_text().replace("</body>", _HAND.replace("NUMBER", str(number)) + "</body>"))
    done = chromium(f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()).stdout.decode()
    results = re.search("<title>(.*?)</title>", done)[1].split(",")
    hovered, left, clicked, up, down, faded, *places, after, found = results
    (_, _, before), (x, _, zoomed), (dragged, _, _) = (map(float, places[i : i + 3]) for i in (0, 3, 6))
    assert (hovered, left) == ("matmul", "4 operations 2 sources")
    # The kernel and x lead to it, tanh and sum follow it; exp and its edge are not on these paths.
    assert (clicked, up, down, faded) == ("matmul", "2", "2", "2")
    assert zoomed > 1.5 * before
    assert dragged - x == pytest.approx(30)
    assert (after, found) == ("matmul", "1")  # a drag does not count as a click


def test_screenshot_shows_boxes(tmp_path):
    image = pytest.importorskip("PIL.Image")
    tape, loss, _, _ = recorded()
    tape.draw(loss, tmp_path / "tape.html")
    shot = tmp_path / "tape.png"
    address = (tmp_path / "tape.html").as_uri()
    chromium(f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={shot}", address)
    colours = {c for _, c in image.open(shot).convert("RGB").getcolors(1 << 20)}
    assert (0x5B, 0x8C, 0x3E) in colours  # a variable
    assert (0xC9, 0x8A, 0x2B) in colours  # a product


def test_viewers_without_html_have_the_picture():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    drawing = tape.draw(y)
    assert type(drawing._repr_svg_()) is str and drawing._repr_svg_() == str(drawing)
    assert drawing._repr_svg_().startswith("<svg")


def test_a_tape_says_whether_it_records():
    with tf.GradientTape(persistent=True) as tape:
        assert repr(tape) == "<GradientTape: persistent, recording, 0 records>"
    assert repr(tape) == "<GradientTape: persistent, not recording, 0 records>"
