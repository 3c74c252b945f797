#!/bin/sh
# Bundle the libraries of pages into fuseflow/report/page/scripts/libraries.js, from the versions in package-lock.json. It needs npm.
set -eu
cd "$(dirname "$0")"
npm ci --no-audit --no-fund --silent
npx esbuild libraries.js --bundle --minify --format=iife --global-name=libraries --charset=ascii --legal-comments=none \
  --banner:js="// Bundled by tools/page_libraries: Observable Plot 0.6.17 and D3 (ISC), d3-dag 1.2.2 (MIT); see NOTICE." \
  --outfile=../../fuseflow/report/page/scripts/libraries.js
rm -rf node_modules
