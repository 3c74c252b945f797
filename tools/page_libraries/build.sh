#!/bin/sh
# Bundle the libraries of pages into fuseflow/report/page/scripts/libraries.js, from the versions in package.json, and their licences
# into libraries.licenses.txt beside it. It needs npm. A bundle of other bytes than the recorded ones is refused: after a change of versions,
# read what is different, and record its new hash here.
set -eu
cd "$(dirname "$0")"
into=../../fuseflow/report/page/scripts
npm install --no-package-lock --no-audit --no-fund --silent
npx esbuild libraries.js --bundle --minify --format=iife --global-name=libraries --charset=ascii --legal-comments=none --log-level=warning \
  --banner:js="// Observable Plot (ISC, Observable, Inc.), D3 (ISC, Mike Bostock), d3-dag (MIT, Erik Brinkman) and what they need; see NOTICE of fuseflow." \
  --outfile=$into/libraries.js
npm ls --omit=dev --all --parseable | sed 1d | LC_ALL=C sort -u | node licenses.js > $into/libraries.licenses.txt
rm -rf node_modules
sha256sum --check --quiet <<END
23e95e4bb016a23f7a45e4cf2612d92d1472a1be5820cf0389b5b4827368201f  $into/libraries.js
090923ec3b50d09f0788d36bf4779ed2df6678aa097630f9544fd1a3a9529612  $into/libraries.licenses.txt
END
