// Command models writes agent/provider/hosted.tsv, what is publicly known of the models of hosted services, from a checkout of the
// models.dev catalogue (https://github.com/anomalyco/models.dev, MIT):
//
//	git clone --depth 1 https://github.com/anomalyco/models.dev /tmp/models.dev
//	go run ./scripts/models /tmp/models.dev "$(git -C /tmp/models.dev log -1 --format=%cs)" > agent/provider/hosted.tsv
//
// Only models that can call tools and answer in text are kept: an agent can use no others.
package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/pillion-dev/pillion/agent/provider"
)

// model is what is read of a model's file. A pointer tells a value that is not written from zero, because a file with base_model
// takes such a value from there.
type model struct {
	Base      string `toml:"base_model"`
	Name      string `toml:"name"`
	Status    string `toml:"status"`
	Reasoning *bool  `toml:"reasoning"`
	Tools     *bool  `toml:"tool_call"`
	Cost      struct {
		In    float64 `toml:"input"`
		Out   float64 `toml:"output"`
		Read  float64 `toml:"cache_read"`
		Write float64 `toml:"cache_write"`
	} `toml:"cost"`
	Limit struct {
		Context int `toml:"context"`
		Output  int `toml:"output"`
	} `toml:"limit"`
	Modalities struct {
		Input  []string `toml:"input"`
		Output []string `toml:"output"`
	} `toml:"modalities"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

// run writes the table to standard output.
func run() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: go run ./scripts/models CHECKOUT DATE > agent/provider/hosted.tsv")
	}
	root := os.Args[1]
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprint(out, "# Written by scripts/models from the catalogue of models.dev (MIT licence). USD per million tokens, limits in tokens, i image p PDF t thinking.\n"+
		"# date "+os.Args[2]+"\n"+
		"# provider\tid\tname\tcontext\toutput\tabilities\tin\tout\tcache read\tcache write\tlong\n")
	for _, service := range provider.HostedServices {
		dir := filepath.Join(root, "providers", service, "models")
		var ids []string
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if rel, relErr := filepath.Rel(dir, path); err == nil && relErr == nil && strings.HasSuffix(path, ".toml") {
				ids = append(ids, strings.TrimSuffix(filepath.ToSlash(rel), ".toml"))
			}
			return err
		})
		if err != nil {
			return err
		}
		slices.Sort(ids)
		for _, id := range ids {
			m, err := read(root, filepath.Join(dir, filepath.FromSlash(id)+".toml"))
			if err != nil {
				return err
			}
			text := len(m.Modalities.Output) == 0 || slices.Contains(m.Modalities.Output, "text")
			if m.Tools == nil || !*m.Tools || !text || m.Status == "deprecated" || m.Limit.Context == 0 {
				continue
			}
			fmt.Fprintln(out, provider.HostedRow(provider.Model{
				Provider: service, ID: id, Name: strings.TrimSpace(m.Name), Context: m.Limit.Context, Output: m.Limit.Output,
				Images: slices.Contains(m.Modalities.Input, "image"), PDF: slices.Contains(m.Modalities.Input, "pdf"), Thinking: m.Reasoning != nil && *m.Reasoning,
				CostIn: m.Cost.In, CostOut: m.Cost.Out, CostRead: m.Cost.Read, CostWrite: m.Cost.Write,
			}))
		}
	}
	return out.Flush()
}

// read is a model's file over the file that it is based on.
func read(root, path string) (m model, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	var base struct {
		Base string `toml:"base_model"`
	}
	if err := toml.Unmarshal(text, &base); err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	if base.Base != "" {
		if m, err = read(root, filepath.Join(root, "models", filepath.FromSlash(base.Base)+".toml")); err != nil {
			return m, err
		}
	}
	// Decoding over the base replaces what the file says and leaves the rest.
	if err := toml.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
