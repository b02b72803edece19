#!/usr/bin/env bash
# Prints the compiler flags of the program, for go build: Makefile, budget.sh and build-release.sh take them from here.
#
# Without inlining these are 1 MB smaller. They run once in a while (a plugin is bundled, a prompt is drawn, settings are read, a tool of an
# MCP server is called), so that a person does not notice it. Not listed is what reads much (JSON, YAML, HTML, encodings, SQLite), what draws
# each frame, and what gains nothing: without inlining OpenTelemetry's packages are 0.17 MB larger.
# Listing a module changes how it is compiled here only: go install and go test do without.
set -euo pipefail
cold=(
  github.com/evanw/esbuild
  github.com/godbus/dbus
  github.com/google/jsonschema-go
  github.com/lib/pq
  github.com/modelcontextprotocol/go-sdk
  github.com/spf13
  github.com/yuin/goldmark
)
printf -- '-gcflags=%s/...=-l\n' "${cold[@]}"
