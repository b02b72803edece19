package provider

import (
	"github.com/pillion-dev/pillion/tools/textutil"
	"net/url"
	"strings"
)

// shorten makes a provider's message one line of at most 400 characters, which an editor can show in a notification. A web page becomes
// "".
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if strings.HasPrefix(s, "<") {
		return ""
	}
	return strings.TrimRight(textutil.Shorten(s, 400), ". ")
}

// redact removes the configured secrets, and what looks like a key, from a text that a person will see or a log will keep.
func (b *base) redact(s string) string {
	secrets := []string{b.cfg.Key, b.cfg.Token}
	for _, v := range b.cfg.Headers {
		secrets = append(secrets, v, strings.TrimPrefix(v, "Bearer "))
	}
	for _, v := range secrets {
		// Shorter values, such as a header "1" or "true", are not secrets, and replacing them would spoil ordinary words.
		if len(v) >= 6 {
			s = strings.ReplaceAll(s, v, "[key]")
		}
	}
	return redactTokens(s)
}

// redactTokens removes words that begin like known keys: providers quote a wrong key in part or in full, and it may be another one than
// the configured, for example that of a gateway's upstream provider.
func redactTokens(s string) string {
	fields := strings.FieldsFunc(s, func(r rune) bool {
		return !(r == '-' || r == '_' || r == '*' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	for _, f := range fields {
		// OpenAI and Anthropic, several services with sk_, Groq, xAI, Google (key, OAuth token), Hugging Face, Replicate, a JWT, Google's newer
		// keys.
		for _, prefix := range []string{"sk-", "sk_", "gsk_", "xai-", "AIza", "ya29.", "hf_", "r8_", "eyJ", "AQ."} {
			// A bare prefix in a sentence ("keys begin with sk-") is not a key.
			if strings.HasPrefix(f, prefix) && len(f) >= len(prefix)+6 {
				s = strings.ReplaceAll(s, f, "[key]")
			}
		}
		// A key that the provider has masked itself still shows its ends.
		if strings.Contains(f, "****") {
			s = strings.ReplaceAll(s, f, "[key]")
		}
	}
	return s
}

// redactURL is scheme, host and path of a URL: user information and the query may be secret.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "an unreadable URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
