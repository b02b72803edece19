// Command gen bundles the zod of node_modules into zod.mjs.gz, which the host of custom tools imports. It leaves out
// the error texts in other languages. Run "npm ci", then "go generate ./tools/custom".
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if err := run("../.."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes host/zod.mjs.gz and zod's licence below the working directory, tools/custom. root is the repository, which has node_modules.
func run(root string) error {
	zod, err := filepath.Abs(filepath.Join(root, "node_modules", "zod"))
	if err != nil {
		return err
	}
	r := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: `export * from "zod"; export { z as default } from "zod";`, ResolveDir: filepath.Dir(filepath.Dir(zod))},
		Bundle: true, Format: api.FormatESModule, Target: api.ES2022, LegalComments: api.LegalCommentsNone,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		// zod imports the error texts of all languages, which no tree shaking removes, as they are reachable by name.
		Plugins: []api.Plugin{{Name: "english", Setup: func(b api.PluginBuild) {
			b.OnLoad(api.OnLoadOptions{Filter: `[\\/]locales[\\/]index\.js$`}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
				text := `export { default as en } from "./en.js";`
				return api.OnLoadResult{Contents: &text, ResolveDir: filepath.Dir(a.Path)}, nil
			})
		}}},
	})
	if len(r.Errors) > 0 {
		return errors.New(r.Errors[0].Text + " (npm ci first)")
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(r.OutputFiles[0].Contents); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	// LegalCommentsNone has removed the licence from the code, and it must be distributed with it.
	licence, err := os.ReadFile(filepath.Join(zod, "LICENSE"))
	if err != nil {
		return err
	}
	if err := os.WriteFile("host/zod.LICENSE", licence, 0o644); err != nil {
		return err
	}
	return os.WriteFile("host/zod.mjs.gz", b.Bytes(), 0o644)
}
