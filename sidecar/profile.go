package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"github.com/spf13/cobra"
)

// profile is the hidden flag --profile DIR: cpu.pprof of the whole run and heap.pprof of its end go there, for
// `go tool pprof`. Without the flag nothing of it runs.
type profile struct {
	dir string
	cpu *os.File
}

// flag adds --profile to every command. It uses the root's PersistentPreRunE, which cobra runs for a subcommand
// that has none of its own.
func (p *profile) flag(root *cobra.Command) {
	root.PersistentFlags().StringVar(&p.dir, "profile", "", "write cpu.pprof and heap.pprof into this folder")
	_ = root.PersistentFlags().MarkHidden("profile")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return p.start() }
}

// start begins the CPU profile; it does nothing without the flag.
func (p *profile) start() error {
	if p.dir == "" {
		return nil
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	cpu, err := os.Create(filepath.Join(p.dir, "cpu.pprof"))
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	p.cpu = cpu
	return pprof.StartCPUProfile(cpu)
}

// stop writes both profiles. It may be called when nothing was started, and is called after a failed command as
// well.
func (p *profile) stop() error {
	if p.cpu == nil {
		return nil
	}
	pprof.StopCPUProfile()
	err := p.cpu.Close()
	heap, herr := os.Create(filepath.Join(p.dir, "heap.pprof"))
	if herr != nil {
		return errors.Join(err, herr)
	}
	runtime.GC() // a heap profile describes the heap at the last collection
	return errors.Join(err, pprof.WriteHeapProfile(heap), heap.Close())
}
