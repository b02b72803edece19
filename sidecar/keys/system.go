package keys

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name under which keys are in the keyring.
const service = "pillion"

// ringLimit is how long a keyring may take: one that waits for a password that cannot be typed counts as missing.
const ringLimit = 3 * time.Second

// errNoRing makes Store use its file.
var errNoRing = errors.New("no keyring answers")

// System is the operating system's keyring.
type System struct{}

// Get implements Ring.
func (System) Get(provider string) (key string, err error) {
	e := within(func() error { key, err = keyring.Get(service, provider); return err })
	return key, e
}

// Set implements Ring.
func (System) Set(provider, key string) error {
	return within(func() error { return keyring.Set(service, provider, key) })
}

// Delete implements Ring.
func (System) Delete(provider string) error {
	return within(func() error {
		// A key that is not there counts as deleted.
		if err := keyring.Delete(service, provider); !errors.Is(err, keyring.ErrNotFound) {
			return err
		}
		return nil
	})
}

// within bounds a call of the keyring by ringLimit. A call that hangs keeps its goroutine until it returns: it cannot be cancelled.
func within(f func() error) error {
	if runtime.GOOS == "linux" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		return errNoRing // looking for one would start a daemon
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(ringLimit):
		return errNoRing
	}
}
