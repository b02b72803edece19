package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/pillion-dev/pillion/tools/guard"
)

// ReleasePage is the page of the newest release. GitHub redirects it to …/releases/tag/vX.Y.Z.
const ReleasePage = "https://github.com/pillion-dev/pillion/releases/latest"

// releasePause is how long ReleaseNotice waits before it asks again.
const releasePause = 24 * time.Hour

// NewestRelease asks page, which is ReleasePage, for the version of the newest release, like "0.2.0". It reads where the page redirects
// to and fetches nothing; the request says nothing about this machine.
func NewestRelease(ctx context.Context, page string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, page, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "pillion")
	client := guard.Client(guard.Reason{Who: guard.Web, Setting: "update_check"}, guard.Network{})
	defer client.CloseIdleConnections()
	client.CheckRedirect = guard.NoRedirects
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close()
	to, err := resp.Location()
	if err != nil || path.Base(path.Dir(to.Path)) != "tag" || !semver.IsValid(path.Base(to.Path)) {
		return "", fmt.Errorf("%s names no release (%s)", page, resp.Status)
	}
	return strings.TrimPrefix(path.Base(to.Path), "v"), nil
}

// NewerRelease reports whether newest is a later release than version. It is false for a version that is none, as builds of a checkout have.
func NewerRelease(newest, version string) bool {
	newest, version = release(newest), release(version)
	return semver.IsValid(newest) && semver.IsValid(version) && semver.Compare(newest, version) > 0
}

// ReleaseLine is what a person is told of a newer release than version; "" where newest is none.
func ReleaseLine(newest, version string) string {
	if !NewerRelease(newest, version) {
		return ""
	}
	return fmt.Sprintf("release %s is out, this is %s: pillion upgrade installs it", newest, version)
}

// release is a version with the "v" that package semver wants.
func release(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// ReleaseNotice is a line about a newer release, "" when there is none, when the person's own settings do not ask for it (update_check),
// or when it was looked for within the last day. A page that does not answer is no news.
func (p *Workplace) ReleaseNotice(ctx context.Context, page string) string {
	if !p.own().UpdateCheck || !semver.IsValid(release(p.version)) {
		return ""
	}
	// The file's time is that of the last question. It is set before the answer: without a network every start would wait for one.
	asked := filepath.Join(p.State, "release-asked")
	if info, err := os.Stat(asked); err == nil && time.Since(info.ModTime()).Abs() < releasePause {
		return ""
	}
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return ""
	}
	if err := os.WriteFile(asked, []byte(time.Now().Format(time.RFC3339)+"\n"), 0o600); err != nil {
		return ""
	}
	newest, err := NewestRelease(ctx, page)
	if err != nil {
		return ""
	}
	return ReleaseLine(newest, p.version)
}
