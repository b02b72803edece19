package app

import (
	"fmt"
	"net/url"
	"os/exec"
	"runtime"

	"github.com/pillion-dev/pillion/tools/guard"
)

// OpenBrowser opens a web address in the person's browser. Without a browser it returns nil, because the caller has also printed the
// address. It fails for anything but http and https: the address comes from a server, and for other schemes xdg-open would start other
// programs.
func OpenBrowser(address string) error {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%q is not a web address and was not opened", address)
	}
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	// The person asked for the page, so guard need not check a setting; it still keeps keys out of the browser's environment.
	cmd := guard.Command(guard.Person, append([]string{path}, args...)...)
	if err := cmd.Start(); err != nil {
		return nil
	}
	// The opener exits when the browser has the address; without Wait it would stay as a zombie.
	go func() { _ = cmd.Wait() }()
	return nil
}
