"""Runs the examples of the guide one after another, and says of each what it printed or what went wrong."""

import contextlib
import io
import json
import runpy
import sys
import traceback

webhook = json.loads(sys.argv[1])
for path in sys.argv[2:]:
    said, trace = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(said):
            made = runpy.run_path(path, run_name="__main__")
            if "handle" in made:
                made["handle"](webhook["body"].encode(), webhook["headers"])
    except BaseException:
        trace = traceback.format_exc()
    print(json.dumps({"name": path, "said": said.getvalue(), "trace": trace}), flush=True)
