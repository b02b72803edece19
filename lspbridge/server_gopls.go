package lspbridge

import (
	"os"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
)

// gopls reports a progress for every diagnosis (Quirks.EndMarker), and publishes the problems of the whole workspace by itself.
func gopls() Server {
	return Server{ID: "gopls", Extensions: []string{".go"}, Filenames: []string{"go.mod", "go.work"}, Workspace: []string{"go.work"}, Markers: []string{"go.mod"},
		Commands: [][]string{{"gopls"}}, Shared: []string{"-remote=auto"}, Install: "go install golang.org/x/tools/gopls@latest",
		Init:     `{"verboseWorkDoneProgress":true,"diagnosticsDelay":"0s"}`,
		Settings: `{"gopls":{"verboseWorkDoneProgress":true,"diagnosticsDelay":"0s"}}`,
		Quirks:   Quirks{EndMarker: true, LateNew: true},
		hooks:    hooks{deletedText: packageClause, loadFailure: unloadedWorkspace, unloaded: unloadedPackage},
		Untrusted: &Restraint{
			Why: "It lists and type-checks packages and builds none. The toolchain is the installed one, whatever go.mod asks for; git is run without hooks and fsmonitor.",
			Env: []string{"GOTOOLCHAIN=local"},
			prepare: func(_ *programs, row Server, _ []string, _ string) (Server, error) {
				// Keep the person's own flags: only their environment and go env can set them, never a project.
				row.Env = append(row.Env, strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false"))
				return row, nil
			},
		}}
}

// unloadedPackage reports whether a problem stands for a file whose package gopls could not load: where the go.mod above it is only proposed, it
// looks for the folder on disk. The words are in gopls' diagnosis of open files without a package.
func unloadedPackage(d change.Problem) bool {
	return d.Source == "go list" && strings.HasPrefix(d.Message, "initialization failed: packages.Load error")
}

// unloadedWorkspace returns why gopls has no view of the project, from the message that it shows then; above all the go command is missing.
// gopls ends the diagnosis of the initial load even so, without a problem. The message is in gopls' session code, not in a protocol.
func unloadedWorkspace(message string) string {
	if !strings.HasPrefix(message, "Error loading workspace folders (expected ") {
		return ""
	}
	_, cause, _ := strings.Cut(message, "\n")
	if _, why, ok := strings.Cut(cause, ": err: "); ok {
		cause = why
	}
	cause, _, _ = strings.Cut(cause, "\n")
	cause = strings.TrimSuffix(strings.TrimSpace(cause), ": stderr:")
	if strings.Contains(cause, "go command required") {
		return "gopls needs the go command, which is not on the PATH; install Go from https://go.dev/dl, or add its folder to the PATH that Pillion is started with"
	}
	return "gopls could not load the project: " + cause
}

// packageClause returns the text of a deleted Go file in an overlay: a file without a package clause would be an error of its own.
func packageClause(old string) string {
	for line := range strings.Lines(old) {
		if name, ok := strings.CutPrefix(line, "package "); ok {
			if f := strings.Fields(name); len(f) > 0 {
				return "package " + f[0] + "\n"
			}
		}
	}
	return ""
}
