// Package gcpauth finds the person's access token for Google Cloud where Google's own libraries find it ("application default
// credentials"): the file that GOOGLE_APPLICATION_CREDENTIALS names, the one of `gcloud auth application-default login`, the metadata
// service of the machine. It leaves to others what the token is for.
//
//	token, err := (&gcpauth.Source{Client: client}).Token(ctx)
package gcpauth

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

const (
	fresh     = time.Minute // how long before its end a token is replaced
	maxAnswer = 1 << 20     // bytes of a service's answer that are read; real ones have a few thousand
	scope     = "https://www.googleapis.com/auth/cloud-platform"
	tokenAt   = "https://oauth2.googleapis.com/token"
)

// Source gives access tokens and keeps each until shortly before it expires. It may be used from several goroutines.
type Source struct {
	Client *http.Client // for Google's services
	Reason guard.Reason // with which a request to the machine's own service passes the gate

	mu   sync.Mutex // guards kept, and is held while a token is fetched: one request serves all who wait
	kept token
}

// token is an access token and the state of the file that it was fetched for: after another sign-in the kept one is not used.
type token struct {
	value string
	ends  time.Time
	from  string // the file and its state; empty: the metadata service
}

// file is a credentials file. Each kind has the fields of its own.
type file struct {
	Type         string
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`
	TokenURI     string `json:"token_uri"`
}

// Place returns the path of the file with the person's credentials, "" where there is none. It does not read the file.
func Place() string {
	if path := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); path != "" {
		return path
	}
	dir := os.Getenv("CLOUDSDK_CONFIG")
	if dir == "" && runtime.GOOS == "windows" {
		dir = filepath.Join(os.Getenv("APPDATA"), "gcloud")
	} else if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".config", "gcloud")
	}
	path := filepath.Join(dir, "application_default_credentials.json")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// Token returns an access token.
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place, from := Place(), ""
	if place != "" {
		info, err := os.Stat(place)
		if err != nil {
			return "", err
		}
		from = fmt.Sprintf("%s %d %d", place, info.Size(), info.ModTime().UnixNano())
	}
	if s.kept.from == from && time.Until(s.kept.ends) > fresh {
		return s.kept.value, nil
	}
	t, err := s.find(ctx, place)
	if err != nil {
		if s.kept.from == from && time.Until(s.kept.ends) > 0 {
			return s.kept.value, nil // it still works
		}
		return "", err
	}
	t.from = from
	s.kept = t
	return t.value, nil
}

// find fetches a token with the credentials of a file, or the machine's.
func (s *Source) find(ctx context.Context, place string) (token, error) {
	if place == "" {
		return s.machine(ctx)
	}
	text, err := os.ReadFile(place)
	if err != nil {
		return token{}, err
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return token{}, fmt.Errorf("%s is not a file of credentials: %w", place, err)
	}
	switch f.Type {
	case "authorized_user":
		return s.fetch(ctx, tokenAddress(f), url.Values{"grant_type": {"refresh_token"}, "client_id": {f.ClientID}, "client_secret": {f.ClientSecret}, "refresh_token": {f.RefreshToken}})
	case "service_account":
		signed, err := assertion(f, time.Now())
		if err != nil {
			return token{}, fmt.Errorf("%s: %w", place, err)
		}
		return s.fetch(ctx, tokenAddress(f), url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {signed}})
	}
	return token{}, fmt.Errorf("%s has credentials of the kind %q, which Pillion does not know; put the output of gcloud auth print-access-token into options.authToken", place, f.Type)
}

// tokenAddress is where a file's credentials are exchanged. They are secrets, so an address without https counts only on this machine.
func tokenAddress(f file) string {
	u, err := url.Parse(f.TokenURI)
	if err != nil || u.Scheme != "https" && !net.ParseIP(u.Hostname()).IsLoopback() {
		return tokenAt
	}
	return f.TokenURI
}

// assertion is the signed statement with which a service account gets a token (RFC 7523).
func assertion(f file, now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(f.PrivateKey))
	if block == nil {
		return "", errors.New("its private_key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return "", errors.New("its private_key is not an RSA key")
	}
	part := func(v any) string {
		text, _ := json.Marshal(v) // maps of texts and numbers
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]string{"alg": "RS256", "typ": "JWT", "kid": f.PrivateKeyID}) + "." +
		part(map[string]any{"iss": f.ClientEmail, "scope": scope, "aud": tokenAddress(f), "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// fetch posts a form to a token service.
func (s *Source) fetch(ctx context.Context, at string, form url.Values) (token, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return token{}, err
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return answer(s.Client, q)
}

// machine asks the metadata service of a machine of Google's, which answers at once where there is one.
func (s *Source) machine(ctx context.Context) (token, error) {
	host := cmp.Or(os.Getenv("GCE_METADATA_HOST"), "169.254.169.254")
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/computeMetadata/v1/instance/service-accounts/default/token", nil)
	if err != nil {
		return token{}, err
	}
	q.Header.Set("Metadata-Flavor", "Google")
	r := s.Reason
	r.Who = guard.Model
	client := guard.Client(r, guard.Network{Timeout: time.Second, Tune: func(t *http.Transport) {
		t.Proxy, t.DisableKeepAlives, t.ResponseHeaderTimeout = nil, true, 2*time.Second
	}})
	client.CheckRedirect = guard.NoRedirects
	t, err := answer(client, q)
	if err != nil {
		return t, fmt.Errorf("no credentials in GOOGLE_APPLICATION_CREDENTIALS or of gcloud auth application-default login, and none of this machine: %w", err)
	}
	return t, nil
}

// answer sends a request and returns the token in the response. An error quotes the service's own words for a failure and never the
// whole response, which may hold a token.
func answer(client *http.Client, q *http.Request) (token, error) {
	resp, err := client.Do(q)
	if err != nil {
		return token{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return token{}, err
	}
	var said struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"` // seconds
		Error       string
		Description string `json:"error_description"`
	}
	err = json.Unmarshal(text, &said)
	switch {
	case resp.StatusCode != http.StatusOK:
		return token{}, fmt.Errorf("%s answered %s %s", q.URL.Host, resp.Status, strings.TrimSpace(said.Error+" "+said.Description))
	case err != nil || said.AccessToken == "":
		return token{}, fmt.Errorf("%s sent no token", q.URL.Host)
	}
	return token{value: said.AccessToken, ends: time.Now().Add(time.Duration(said.ExpiresIn) * time.Second)}, nil
}
