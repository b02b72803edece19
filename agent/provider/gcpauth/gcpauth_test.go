package gcpauth

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// google is Google's token service and the metadata service of a machine.
func google(t *testing.T, key *rsa.PublicKey) (address string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.Path+" "+r.FormValue("grant_type"))
		ok := false
		switch r.FormValue("grant_type") {
		case "refresh_token":
			ok = r.FormValue("client_id") == "id" && r.FormValue("client_secret") == "client-secret" && r.FormValue("refresh_token") == "refresh-secret"
		case "urn:ietf:params:oauth:grant-type:jwt-bearer":
			text, signature, _ := cutLast(r.FormValue("assertion"), ".")
			sum := sha256.Sum256([]byte(text))
			raw, _ := base64.RawURLEncoding.DecodeString(signature)
			_, claims, _ := strings.Cut(text, ".")
			decoded, _ := base64.RawURLEncoding.DecodeString(claims)
			var c struct {
				Iss, Aud, Scope string
				Iat, Exp        int64
			}
			ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw) == nil && json.Unmarshal(decoded, &c) == nil && c.Iss == "me@project" && c.Scope == scope && c.Exp == c.Iat+3600 && strings.HasPrefix(c.Aud, "http://127.0.0.1")
		case "":
			ok = r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" && r.Header.Get("Metadata-Flavor") == "Google"
		}
		if !ok {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}`)
			return
		}
		fmt.Fprintf(w, `{"access_token": "token-%d", "expires_in": 3599}`, len(*asked))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func TestATokenIsFoundWhereGooglesToolsFindIt(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	at, asked := google(t, &key.PublicKey)
	user := map[string]string{"type": "authorized_user", "client_id": "id", "client_secret": "client-secret", "refresh_token": "refresh-secret", "token_uri": at}
	account := map[string]string{"type": "service_account", "client_email": "me@project", "private_key": text, "token_uri": at}
	expired := map[string]string{"type": "authorized_user", "client_id": "id", "client_secret": "client-secret", "refresh_token": "old-refresh-secret", "token_uri": at}
	for name, tt := range map[string]struct {
		file map[string]string
		want string // of the token, or of the error
	}{
		"a person's sign-in":     {user, "token-"},
		"a service account":      {account, "token-"},
		"the machine":            {nil, "token-"},
		"a sign-in that expired": {expired, "invalid_grant Token has been expired"},
		"another kind":           {map[string]string{"type": "external_account"}, "external_account"},
		"a key that is none":     {map[string]string{"type": "service_account", "private_key": "x"}, "private_key"},
	} {
		t.Run(name, func(t *testing.T) {
			config := t.TempDir()
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
			t.Setenv("CLOUDSDK_CONFIG", config)
			t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(at, "http://"))
			path := filepath.Join(config, "application_default_credentials.json")
			if tt.file != nil {
				raw, err := json.Marshal(tt.file)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, raw, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if (Place() == path) != (tt.file != nil) {
				t.Errorf("the place is %q", Place())
			}
			s := &Source{Client: http.DefaultClient}
			*asked = nil
			got, err := s.Token(t.Context())
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tt.want) || strings.Contains(got, "secret") {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if err != nil {
				return
			}
			if again, err := s.Token(t.Context()); err != nil || again != got || len(*asked) != 1 {
				t.Errorf("asked again: %v %v %v", again, err, *asked)
			}
			// Another sign-in counts at once.
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(config, "none.json"))
			if _, err := s.Token(t.Context()); err == nil {
				t.Error("the token of a sign-in that is gone is used")
			}
		})
	}
}

// Credentials are secrets: an address that is not https is not theirs.
func TestWhereCredentialsAreExchanged(t *testing.T) {
	for uri, want := range map[string]string{"": tokenAt, "http://evil.example/token": tokenAt, "://": tokenAt, "https://sts.example/token": "https://sts.example/token", "http://127.0.0.1:5/t": "http://127.0.0.1:5/t"} {
		if got := tokenAddress(file{TokenURI: uri}); got != want {
			t.Errorf("%q: %q", uri, got)
		}
	}
}
