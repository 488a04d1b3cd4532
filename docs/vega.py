"""Bundle the library that draws the charts of reports: `python docs/vega.py`.

`vl-convert-python`, whose version constraints.txt pins, holds Vega, Vega-Lite and Vega-Embed; they
are bundled once, here, so that whoever makes a report needs no further package.
"""

import gzip
from pathlib import Path

import vl_convert

from fedlap_app.reports.page import LIBRARY

PLACE = Path(__file__).parents[1] / "fedlap_app" / "reports" / LIBRARY

if __name__ == "__main__":
    newest = vl_convert.get_vegalite_versions()[-1]
    script = vl_convert.javascript_bundle(vl_version=newest)
    PLACE.write_bytes(gzip.compress(script.encode(), 9, mtime=0))
    print(f"Vega {vl_convert.get_vega_version()}, Vega-Lite {newest}: {PLACE.stat().st_size} bytes")
