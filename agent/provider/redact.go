package provider

import (
	"github.com/pillion-dev/pillion/tools/textutil"
	"net/url"
	"strings"
)

// shorten makes a provider's message one line of at most 400 characters, and drops web pages.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if strings.HasPrefix(s, "<") {
		return ""
	}
	return strings.TrimRight(textutil.Shorten(s, 400), ". ")
}

// redact removes the configured secrets, and what looks like one, from a text.
func (b *base) redact(s string) string {
	secrets := []string{b.cfg.Key, b.cfg.Token}
	for _, v := range b.cfg.Headers {
		secrets = append(secrets, v, strings.TrimPrefix(v, "Bearer "))
	}
	for _, v := range secrets {
		if len(v) >= 6 {
			s = strings.ReplaceAll(s, v, "[key]")
		}
	}
	return redactTokens(s)
}

// redactTokens removes words with the prefixes of known keys. Providers quote a wrong key back, in part
// or in full.
func redactTokens(s string) string {
	fields := strings.FieldsFunc(s, func(r rune) bool {
		return !(r == '-' || r == '_' || r == '*' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	for _, f := range fields {
		for _, prefix := range []string{"sk-", "sk_", "gsk_", "xai-", "AIza", "ya29.", "hf_", "r8_", "eyJ", "AQ."} {
			if strings.HasPrefix(f, prefix) && len(f) >= len(prefix)+6 {
				s = strings.ReplaceAll(s, f, "[key]")
			}
		}
		if strings.Contains(f, "****") {
			s = strings.ReplaceAll(s, f, "[key]")
		}
	}
	return s
}

// redactURL is scheme, host and path: user information and the query may be secret.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "an unreadable URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
