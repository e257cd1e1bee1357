# Generates types from the API's document ($1) and compiles the client against them, in an empty folder ($2).
set -eu
modules="$PWD/node_modules"
cp client.ts "$2"
ln -s "$modules" "$2/node_modules"
node "$modules/openapi-typescript/bin/cli.js" "$1" --output "$2/api.d.ts"
cd "$2"
node "$modules/typescript/bin/tsc" --noEmit --strict --module esnext --moduleResolution bundler --target es2022 \
    --lib es2022,dom client.ts
