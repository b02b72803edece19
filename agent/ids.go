package agent

import (
	"crypto/rand"

	"github.com/oklog/ulid/v2"
)

// NewMessageID makes the id of a prompt.
func NewMessageID() string { return newID("msg_") }

// newID makes an identifier that sorts by time and cannot be guessed: the prefix and a ULID, such as "ses_01J…".
func newID(prefix string) string {
	return prefix + ulid.MustNew(ulid.Now(), rand.Reader).String()
}
