"""A channel as a matrix of formulas, shaded by their values: drawn by matplotlib."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.reproduction.leakage_tables import SHADED_AT, LeakageTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHADES = "Blues"
_DARKEST = 0.75  # of the shades, so that black stays readable up to _WHITE_FROM
_WHITE_FROM = 0.6
_CORRECTED = "#D55E00"

_ROW_INCHES = 0.46
_INCHES_A_LETTER = 0.082
_NARROWEST = 0.62
_MARGIN_INCHES = 1.0
_HEAD_INCHES = 1.35
_TEXT_PER_INCH = 12.0


def draw_matrix(drawing: "Figure", table: LeakageTable) -> None:
    """Draw a table into an empty drawing, whose size it sets.

    Parameters
    ----------
    drawing : matplotlib Figure
        With the constrained layout.
    table : LeakageTable
        With at least one entry; corrected ones are outlined, and say what the paper prints.
    """
    values = np.array([[float(each.value(SHADED_AT)) for each in row] for row in table.entries])
    width = len(table.outputs) * _cell_width(table) + _MARGIN_INCHES
    foot = _foot(table, width)
    height = len(table.inputs) * _ROW_INCHES + _HEAD_INCHES + 0.16 * foot.count("\n")
    drawing.set_size_inches(width, height)
    axis = drawing.subplots()
    top = max(values.max(), 1e-9)
    axis.imshow(values / top * _DARKEST, cmap=_SHADES, vmin=0.0, vmax=1.0, aspect="auto")
    for row, column in np.ndindex(values.shape):
        is_dark = values[row, column] / top * _DARKEST > _WHITE_FROM
        _draw_cell(axis, table, row, column, "white" if is_dark else "black")
    _draw_frame(axis, table)
    drawing.supxlabel(foot, fontsize=8.5, color=_CORRECTED if table.correction else "#444444")


def _cell_width(table: LeakageTable) -> float:
    """Return inches that hold the longest entry and label."""
    entries = [str(each).replace("(1-p)", "q") for row in table.entries for each in row]
    letters = max(map(len, (*entries, *table.outputs)))
    return max(_NARROWEST, letters * _INCHES_A_LETTER)


def _foot(table: LeakageTable, width: float) -> str:
    """Return what stands below the matrix."""
    shading = r"Shaded by the value at $p = 0.75$, $\bar{p} = 1 - p$."
    has_p = any(len(each.coefficients) > 1 for row in table.entries for each in row)
    lines = [shading] if has_p else []
    if table.correction:
        text = f"Outlined entries are corrected: {table.correction}."
        lines.append(textwrap.fill(text, int(width * _TEXT_PER_INCH)))
    return "\n".join(lines)


def _draw_cell(axis: Any, table: LeakageTable, row: int, column: int, colour: str) -> None:
    """Write one entry, and outline it where the paper prints another."""
    tex = table.entries[row][column].to_tex()
    printed = table.printed.get((row, column))
    axis.text(
        column,
        row if printed is None else row - 0.14,
        f"${tex}$",
        ha="center",
        va="center",
        color=colour if tex != "0" else "#a0a0a0",
        fontsize=10.5,
        math_fontfamily="cm",
    )
    if printed is None:
        return
    from matplotlib.patches import Rectangle

    axis.text(
        column,
        row + 0.27,
        f"printed ${printed.to_tex()}$",
        ha="center",
        va="center",
        color=colour,
        fontsize=7,
        math_fontfamily="cm",
    )
    corner = (column - 0.47, row - 0.46)
    axis.add_patch(
        Rectangle(corner, 0.94, 0.92, fill=False, edgecolor=_CORRECTED, linewidth=2.0, zorder=3)
    )


def _draw_frame(axis: Any, table: LeakageTable) -> None:
    """Label rows and columns as the paper does, and rule the cells."""
    axis.set_xticks(range(len(table.outputs)), table.outputs)
    axis.set_yticks(range(len(table.inputs)), table.inputs)
    axis.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    for label in (*axis.get_xticklabels(), *axis.get_yticklabels()):
        label.set_fontfamily("monospace")
        label.set_fontsize(9.5)
    axis.set_xticks(np.arange(1, len(table.outputs)) - 0.5, minor=True)
    axis.set_yticks(np.arange(1, len(table.inputs)) - 0.5, minor=True)
    axis.grid(which="minor", color="white", linewidth=1.2)
    axis.tick_params(which="minor", length=0, top=False, bottom=False, left=False)
    axis.spines[:].set_visible(False)
    axis.set_title(
        f"{table.title}, ${table.symbol}$", math_fontfamily="cm", fontsize=10.5, loc="left", pad=10
    )
