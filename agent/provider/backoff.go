package provider

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Backoff is how long to wait before attempt number attempt (1: the first repetition): 1 s, doubled each time up to 30 s, less up to a
// quarter at random. It is never shorter than the provider asked for, of which at most an hour counts.
func Backoff(attempt int, err *Error) time.Duration {
	d := maxBackoff
	if attempt < 1 {
		attempt = 1
	}
	if attempt < 6 {
		d = time.Second << (attempt - 1)
	}
	// Without jitter all sessions that failed together would come back together. rand.N panics for 0, so one nanosecond is added.
	d -= rand.N(d/4 + 1)
	if err != nil && err.RetryAfter > 0 {
		// The provider told all clients the same second, so each adds a little.
		d = max(d, min(err.RetryAfter, maxRetryAfter)+rand.N(250*time.Millisecond))
	}
	return d
}

// retryAfter reads Retry-After-Ms and Retry-After in seconds or as a date. A date is measured against the
// response's own Date, so a wrong clock on either side does not matter; without one it must be near to be believed.
// The result is at most an hour; 0 means that nothing was asked, or nothing that makes sense.
// Retry-After is defined in RFC 9110, section 10.2.3; Retry-After-Ms is OpenAI's addition.
func retryAfter(h http.Header, now time.Time) time.Duration {
	// a failure inside a stream has no header
	if h == nil {
		return 0
	}
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(s)
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	// The date is in whole seconds, so the result may be off by one.
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		// The local clock may be wrong by hours: a wait of more than ten minutes that only it supports is not believed.
		if sent = now; t.Sub(now) > 10*time.Minute {
			return 0
		}
	}
	return seconds(t.Sub(sent).Seconds())
}

// seconds is a wait of s seconds, bounded.
func seconds(s float64) time.Duration {
	// More than a day is a wrong clock or a typo; see absurdRetryAfter.
	if !(s > 0 && s <= absurdRetryAfter.Seconds()) { // written so that NaN is refused too
		return 0
	}
	return min(time.Duration(s*float64(time.Second)), maxRetryAfter)
}
