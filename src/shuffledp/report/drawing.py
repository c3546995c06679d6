"""What draws static images: matplotlib, without a window."""

from types import SimpleNamespace

from shuffledp.core.errors import MissingPackageError


def require_matplotlib(otherwise: str = "") -> SimpleNamespace:
    """Import what draws images; better before the work than after it.

    Parameters
    ----------
    otherwise : str
        What else the user could do, as the end of the message.

    Returns
    -------
    namespace
        With the classes ``figure`` and ``canvas``; no window system is touched.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingPackageError(
            f"figures need matplotlib: run pip install 'shuffledp[attacks]'{otherwise}",
            name="matplotlib",
        ) from None
    return SimpleNamespace(figure=Figure, canvas=FigureCanvasAgg)
