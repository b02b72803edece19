package builtin

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/gofix"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// maxTyped limits how long types are checked without a server: a word that comes later is of no use.
const maxTyped = time.Minute

// checkTypes gives a word for the time until the servers have answered: what types alone tell of a change that has only Go files. It comes where
// a server is loading after checkTyped. Nothing waits for its goroutine, which ends soon after ctx or asked: it reads files, and go/types cannot be
// interrupted within a package.
func (c checker) checkTypes(ctx context.Context, files []lspbridge.Proposal, asked <-chan struct{}) <-chan string {
	typed := make(chan string, 1)
	if c.present == nil {
		return typed
	}
	ctx, cancel := context.WithTimeout(ctx, maxTyped)
	go func() { // the servers' answer ends it
		select {
		case <-asked:
		case <-ctx.Done():
		}
		cancel()
	}()
	go func() {
		select {
		case <-time.After(checkTyped):
		case <-ctx.Done():
			return
		}
		if c.busy(files) == "" {
			return
		}
		if said := c.typesAlone(ctx, files); said != "" {
			typed <- said
		}
	}()
	return typed
}

// typesAlone says which errors a change introduces into the packages whose files it changes; "" where that is not known for sure.
func (c checker) typesAlone(ctx context.Context, files []lspbridge.Proposal) string {
	var edits []gofix.Edit
	for _, f := range files {
		edits = append(edits, gofix.Edit{Path: f.Path, Text: f.Text, Delete: f.Delete})
	}
	report, ok := gofix.TypeCheck(ctx, edits, c.present)
	if !ok {
		return ""
	}
	of := "package " + report.Packages[0]
	if len(report.Packages) > 1 {
		of = "packages " + strings.Join(report.Packages, ", ")
	}
	if len(report.Errors) == 0 {
		return fmt.Sprintf("types alone find no error in %s; nothing else is checked yet", of)
	}
	e := report.Errors[0]
	more := ""
	if n := len(report.Errors) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Sprintf("types alone find %s that this change introduces in %s: %s:%d: %s%s", textutil.Plural(len(report.Errors), "error"), of,
		filepath.ToSlash(c.rel(e.Path)), e.Line, textutil.FirstLine(e.Message), more)
}
