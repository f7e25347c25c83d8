"""The notebooks of the documentation: executed without a kernel, and rendered as pages of the site.

``python scripts/notebooks.py`` runs every notebook in an empty folder and stores what its cells show, as Jupyter would.
"""

import ast
import base64
import contextlib
import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "execute", "page"]

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def execute(notebook: dict[str, Any], *, store: bool = False) -> None:
    """Run all cells in one namespace, in this process and this folder; a cell that fails raises its error."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        outputs = _run("".join(cell["source"]), namespace, number)
        if store:
            cell |= {"execution_count": number, "outputs": outputs}


def _run(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, and what its last expression shows."""
    tree, last, printed = ast.parse(source), None, io.StringIO()
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<cell {number}>", "exec"), namespace)  # noqa: S102 # our own documentation
        shown = None if last is None else eval(compile(last, f"<cell {number}>", "eval"), namespace)  # noqa: S307 # likewise
    text = printed.getvalue()
    outputs = [{"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}] if text else []
    if shown is not None:
        data = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": _shown(shown)}
        outputs.append(data)
    return outputs


def _shown(value: Any) -> dict[str, Any]:
    """What Jupyter would keep of a value: a picture of a figure, HTML where there is some, and always text."""
    found: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        found["text/html"] = value._repr_html_().splitlines(keepends=True)  # Jupyter's protocol
    elif hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        found["image/png"] = base64.b64encode(picture.getvalue()).decode()
    if hasattr(value, "savefig"):
        found["text/plain"] = ["<Figure>"]
    return found


def page(notebook: dict[str, Any], name: str) -> str:
    """A notebook in Markdown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    first, *rest = parts
    return "\n\n".join([first, f"[Download this notebook]({name})", *rest]) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", [])})
    if "image/png" in data:
        return f'<img alt="what the cell draws" src="data:image/png;base64,{data["image/png"]}">'
    if "text/html" in data:
        return "<div>" + re.sub(r"\s*\n\s*", " ", "".join(data["text/html"])) + "</div>"
    return f"```text\n{''.join(data['text/plain']).rstrip()}\n```"


def _main() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            execute(notebook, store=True)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(path.name)


if __name__ == "__main__":
    os.environ |= {"COLUMNS": "80", "LOGNAME": "analyst"}  # receipts name who asked
    _main()
