"""Draw the picture of the shuffle model that README and the documentation show.

``python docs/model_picture.py`` writes ``docs/model.svg``; a test compares it with the file.
"""

from pathlib import Path

FILE = Path(__file__).with_name("model.svg")

#: Title, lines, and left edge of each box.
BOXES = (
    ("People", ("a true answer each,", "randomized on the device", "with epsilon0"), 10),
    ("Shuffler", ("mixes sealed reports,", "forgets senders,", "may add dummies"), 290),
    ("Analyzer", ("counts the reports,", "corrects for the noise", "on average"), 570),
)
WIDTH, HEIGHT, BOX_WIDTH, BOX_HEIGHT, TOP = 790, 232, 210, 112, 20

#: Who sees what, below the arrows: text, centre, and class.
PROMISES = (
    ("A report with its name on it:", 255, 166, "text"),
    ("odds change by at most e^epsilon0", 255, 186, "strong"),
    ("whatever the shuffler does", 255, 206, "text"),
    ("Shuffled reports, and all made of them:", 545, 166, "text"),
    ("odds change by at most e^epsilon", 545, 186, "strong"),
    ("except with probability delta", 545, 206, "text"),
)

STYLE = """
  text { font: 14px sans-serif; fill: #1f2937; text-anchor: middle }
  .title { font-weight: bold; font-size: 16px }
  .strong { font-weight: bold }
  rect { fill: #eff6ff; stroke: #0b61a4; stroke-width: 1.5 }
  line { stroke: #0b61a4; stroke-width: 2 }
  polygon { fill: #0b61a4 }
  .seen { stroke: #9ca3af; stroke-width: 1.2; stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e5e7eb }
    rect { fill: #172554; stroke: #60a5fa }
    line { stroke: #60a5fa }
    polygon { fill: #60a5fa }
  }
"""

DESCRIPTION = (
    "People randomize their answers on their devices; a shuffler mixes the sealed reports; an "
    "analyzer counts them. Before the shuffler epsilon0 limits what a report tells, after it "
    "epsilon and delta do."
)


def picture() -> str:
    """Return the picture as SVG."""
    middle = TOP + BOX_HEIGHT / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title description">',
        '<title id="title">The shuffle model</title>',
        f'<desc id="description">{DESCRIPTION}</desc>',
        f"<style>{STYLE}</style>",
    ]
    for title, lines, left in BOXES:
        centre = left + BOX_WIDTH / 2
        parts.append(
            f'<rect x="{left}" y="{TOP}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8"/>'
            f'<text class="title" x="{centre:g}" y="{TOP + 28}">{title}</text>'
        )
        parts += [
            f'<text x="{centre:g}" y="{TOP + 54 + 20 * row}">{line}</text>'
            for row, line in enumerate(lines)
        ]
    for _, _, left in BOXES[1:]:
        start, end, seen = left - 66, left - 6, left - 35
        parts.append(
            f'<line x1="{start}" y1="{middle:g}" x2="{end - 8}" y2="{middle:g}"/>'
            f'<polygon points="{end},{middle:g} {end - 10},{middle - 6:g} '
            f'{end - 10},{middle + 6:g}"/>'
            f'<line class="seen" x1="{seen}" y1="{middle + 6:g}" x2="{seen}" y2="148"/>'
        )
    parts += [
        f'<text class="{kind}" x="{x}" y="{y}">{text}</text>' for text, x, y, kind in PROMISES
    ]
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
