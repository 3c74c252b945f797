#!/bin/sh
# Bundle the libraries of pages into fuseflow/report/page/scripts/libraries.js, from the versions in package-lock.json, and their licences
# into libraries.licenses.txt beside it. It needs npm.
set -eu
cd "$(dirname "$0")"
into=../../fuseflow/report/page/scripts
npm ci --no-audit --no-fund --silent
npx esbuild libraries.js --bundle --minify --format=iife --global-name=libraries --charset=ascii --legal-comments=none --log-level=warning \
  --banner:js="// Observable Plot (ISC, Observable, Inc.), D3 (ISC, Mike Bostock), d3-dag (MIT, Erik Brinkman) and what they need; see NOTICE of fuseflow." \
  --outfile=$into/libraries.js
npm ls --omit=dev --all --parseable | sed 1d | LC_ALL=C sort -u | node licenses.js > $into/libraries.licenses.txt
rm -rf node_modules
