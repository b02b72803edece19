package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionCommand is `pillion version`: more than --version, for reports of faults.
func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(c *cobra.Command, _ []string) error {
			// The go command records the commit in builds from a Git checkout; an installed module has none.
			commit := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						commit = s.Value
					}
				}
			}
			// The keys are an interface for scripts and bug reports; the line below is not.
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{"version": version, "commit": commit, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintf(c.OutOrStdout(), "pillion %s %s %s/%s %s\n", version, short(commit), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// short is a commit in 12 digits, which is unique in any repository of this size; a note where the build has none.
// The JSON has the whole commit.
func short(commit string) string {
	if len(commit) > 12 {
		return commit[:12]
	}
	if commit == "" {
		return "(no commit)"
	}
	return commit
}
