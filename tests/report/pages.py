"""Pages and charts as a browser would see them."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags, attributes and texts of a page, read as a browser would."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.texts = [], [], [], []
        self.inside = ""
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside != "style":
            self.texts.append(data)


def colours_filled_in(value):
    """Replace the CSS variables, as the page's script does."""
    if isinstance(value, str) and value.startswith("var(--"):
        return "Arial" if value == "var(--font)" else "#123456"
    if isinstance(value, list):
        return [colours_filled_in(item) for item in value]
    if isinstance(value, dict):
        return {key: colours_filled_in(item) for key, item in value.items()}
    return value
