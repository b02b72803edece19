// Command servers checks the table of language servers against the registries: it installs each server that `pillion doctor --install` can
// install, as that does it, into a folder of its own, starts the program and sends initialize.
//
//	go run ./scripts/servers [ID…]   # all of them: half an hour and 2 GB
//
// It needs the network and runs what it downloads, with an empty home folder and without keys. It is not part of make test. It fails for a
// package, a version or a program's name that does not exist, and for a program that does not answer.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
)

// limit is how long a server may take to answer initialize. The slowest, on two busy cores, took 8 s.
const limit = time.Minute

func main() {
	failed := 0
	for _, row := range lspbridge.Servers() {
		if len(os.Args) > 1 && !slices.Contains(os.Args[1:], row.ID) {
			continue
		}
		said, err := try(row)
		switch {
		case errors.Is(err, lspbridge.ErrNotInstallable):
			said = "not installable: " + row.Install
		case err != nil:
			failed++
			said = "FAIL " + err.Error()
		}
		fmt.Printf("%-14s %s\n", row.ID, said)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// try installs a server and asks it for its capabilities. It returns the name and version that the server gives itself.
func try(row lspbridge.Server) (string, error) {
	scratch, err := os.MkdirTemp("", "pillion-server-")
	if err != nil {
		return "", err
	}
	defer removeAll(scratch)
	plan, err := lspbridge.PlanInstall(row.ID, filepath.Join(scratch, "servers"))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	program, err := lspbridge.Install(context.Background(), plan, &out)
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out.String())
	}
	home := filepath.Join(scratch, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return "", err
	}
	args := row.Commands[0][1:]
	for _, c := range row.Commands {
		if c[0] == filepath.Base(program) {
			args = c[1:]
		}
	}
	// npm's newest TypeScript is 7, which is itself the server that Pillion then uses; typescript-language-server works with older ones.
	if native := filepath.Join(filepath.Dir(program), "tsc"); row.ID == "typescript" {
		program, args = native, []string{"--lsp", "--stdio"}
	}
	name, err := initialize(program, args, home, filepath.Join(filepath.Dir(filepath.Dir(program)), "typescript", "lib"))
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return "answers: " + name, nil
}

// removeAll makes folders writable first: Go's module cache is not.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// initialize sends initialize; tsdk is the folder of the TypeScript beside the server, which Vue, Svelte and Astro want to know.
func initialize(program string, args []string, home, tsdk string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	outPipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	// The group: npm's launchers start the server as a child of their own.
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	uri := "file://" + home
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": map[string]any{
		"processId": os.Getpid(), "rootUri": uri, "capabilities": map[string]any{}, "workspaceFolders": []any{map[string]any{"uri": uri, "name": "home"}},
		"initializationOptions": map[string]any{"typescript": map[string]any{"tsdk": tsdk}},
	}})
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		return "", err
	}
	r := textproto.NewReader(bufio.NewReader(outPipe))
	for {
		header, err := r.ReadMIMEHeader()
		if err != nil {
			return "", fmt.Errorf("no answer to initialize (%w): %s", err, strings.TrimSpace(stderr.String()))
		}
		n, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return "", err
		}
		message := make([]byte, n)
		if _, err := io.ReadFull(r.R, message); err != nil {
			return "", err
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result struct {
				Capabilities map[string]any
				ServerInfo   struct{ Name, Version string }
			}
			Error *struct{ Message string }
		}
		if err := json.Unmarshal(message, &m); err != nil {
			return "", err
		}
		switch {
		case m.Method != "" || string(m.ID) != "1":
			continue
		case m.Error != nil:
			return "", errors.New(m.Error.Message)
		case len(m.Result.Capabilities) == 0:
			return "", errors.New("it announces no capabilities")
		}
		version, _, _ := strings.Cut(m.Result.ServerInfo.Version, "{") // gopls gives its whole build in JSON
		return strings.TrimSpace(m.Result.ServerInfo.Name + " " + version), nil
	}
}
