//go:build !linux

package search

import (
	"context"
	"time"
)

// projectIndex does not exist here: inotify is what tells that nothing was missed, and the other systems' means have no such promise.
type projectIndex struct{}

func newProjectIndex(string, *IndexOptions, []string) *projectIndex { return &projectIndex{} }

func (*projectIndex) begin()            {}
func (*projectIndex) end(time.Duration) {}
func (*projectIndex) close()            {}

func (*projectIndex) indexed(*grepJob) engine { return nil }

func (*projectIndex) glob(string, *Pattern, *newest, func(string)) bool { return false }

// BuildMain makes no index here.
func BuildMain([]string, func(string) bool) int { return 1 }

// Build makes no index here.
func Build(context.Context, string, string, bool, func(string) bool) error { return errIndexSystem }

// IndexReport says why there is no index.
func IndexReport(string, string) (string, bool) { return errIndexSystem.Error(), false }
