"""Pages and charts as a browser would see them."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from shuffledp.report.page import templates


class Page(HTMLParser):
    """Tags, attributes and texts of a page, read as a browser would."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.inside = ""
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside != "style":
            self.texts.append(data)


def drawn(figure):
    """Return the elements of a figure's drawing, read as XML; no place is out of bounds."""
    return elements_of(figure.drawing)


def elements_of(chart):
    """Return the elements of one drawing."""
    assert 0.0 <= chart.x.first < chart.x.last <= chart.width
    assert 0.0 <= chart.top < chart.bottom <= chart.height
    template = templates().from_string(
        '{% import "chart.html" as c %}{{ c.drawing(chart, "wide") }}'
    )
    elements = list(ET.fromstring(template.render(chart=chart)).iter())  # noqa: S314  # ours
    for each in [*chart.x_ticks, *chart.y_ticks, *(each.attrib for each in elements)]:
        assert not {"nan", "inf"} & set(re.findall(r"[a-z]+", str(each)))
    return elements


def of_class(elements, name):
    """Return the elements of one class."""
    return [each for each in elements if each.get("class") == name]


def labels(elements, kind):
    """Return the texts of one class."""
    return ["".join(each.itertext()) for each in of_class(elements, kind)]
