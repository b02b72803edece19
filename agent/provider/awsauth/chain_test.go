package awsauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// services stands for AWS's services, the container's and the machine's. asked are the requests: method, path, query or body, and the
// secret or the keys that they came with.
type services struct {
	*httptest.Server
	noToken bool          // of the metadata service, as its first version
	life    time.Duration // of the credentials
	key     *ecdsa.PrivateKey

	mu    sync.Mutex // guards what follows
	asked []string
	down  bool
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line := r.Method + " " + r.URL.Path
	if more := r.URL.RawQuery + string(body); more != "" {
		line += " " + regexp.MustCompile(`pillion-\d+`).ReplaceAllString(more, "NAME")
	}
	for _, name := range []string{"X-Aws-Ec2-Metadata-Token", "X-Amz-Sso_bearer_token", "Authorization"} {
		if v := r.Header.Get(name); v != "" {
			line += " with " + regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=(\w+)/\d+/([^,]*),.*`).ReplaceAllString(v, "$1 for $2")
		}
	}
	s.mu.Lock()
	down := s.down
	s.asked = append(s.asked, line)
	s.mu.Unlock()
	expires := time.Now().Add(s.life).UTC()
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"message":"try later"}`)
	case r.URL.Path == "/latest/api/token" && s.noToken:
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Path == "/latest/api/token":
		fmt.Fprint(w, "IMDS")
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
		fmt.Fprint(w, "my-role\n")
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/my-role":
		fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"M","SecretAccessKey":"MS","Token":"MT","Expiration":%q}`, expires.Format(time.RFC3339))
	case r.URL.Path == "/creds":
		fmt.Fprintf(w, `{"AccessKeyId":"C","SecretAccessKey":"CS","Token":"CT","Expiration":%q}`, expires.Format(time.RFC3339))
	case r.URL.Path == "/federation/credentials":
		fmt.Fprintf(w, `{"roleCredentials":{"accessKeyId":"S","secretAccessKey":"SS","sessionToken":"ST","expiration":%d}}`, expires.UnixMilli())
	case r.URL.Path == "/token":
		fmt.Fprint(w, `{"accessToken":"NEW","expiresIn":3600,"refreshToken":"NEXT"}`)
	case r.URL.Path == "/v1/token" && s.proves(r.Header.Get("DPoP"), s.URL+"/v1/token"):
		fmt.Fprint(w, `{"accessToken":{"accessKeyId":"L","secretAccessKey":"LS","sessionToken":"LT"},"expiresIn":900,"refreshToken":"NEXT"}`)
	case r.URL.Path == "/" && strings.Contains(string(body), "role%2Fforbidden"):
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>not &quot;you&quot;</Message></Error></ErrorResponse>`)
	case r.URL.Path == "/":
		fmt.Fprintf(w, `<X><Credentials><AccessKeyId>R</AccessKeyId><SecretAccessKey>RS</SecretAccessKey><SessionToken>RT</SessionToken><Expiration>%s</Expiration></Credentials></X>`, expires.Format(time.RFC3339))
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// proves verifies a DPoP proof for address with the public key of the sign-in (RFC 9449).
func (s *services) proves(proof, address string) bool {
	parts := strings.Split(proof, ".")
	if len(parts) != 3 {
		return false
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return len(signature) == 64 && strings.Contains(string(claims), `"htu":"`+address+`"`) &&
		ecdsa.Verify(&s.key.PublicKey, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
}

// start starts the services and gives the test an empty home folder and an environment that leads to them.
func start(t *testing.T) *services {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &services{life: time.Hour, key: key}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.URL)
	return s
}

// write writes a file of the home folder. HOME in the text is that folder.
func write(t *testing.T, name, text string) {
	home := os.Getenv("HOME")
	path := filepath.Join(home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "HOME", home)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ssoFile and loginFile are the names under which AWS's tools keep sign-ins.
func ssoFile(key string) string {
	sum := sha1.Sum([]byte(key))
	return ".aws/sso/cache/" + hex.EncodeToString(sum[:]) + ".json"
}

func loginFile(session string) string {
	sum := sha256.Sum256([]byte(session))
	return ".aws/login/cache/" + hex.EncodeToString(sum[:]) + ".json"
}

// Every case was run against aws-sdk-go-v2's chain with the same services: keys, requests and files were equal.
func TestCredentialsAreFoundWhereAWSFindsThem(t *testing.T) {
	const (
		static = "aws_access_key_id=K\naws_secret_access_key=KS\n"
		role   = "role_arn=arn:aws:iam::1:role/r\n"
		sso    = "sso_session=my\nsso_account_id=12\nsso_role_name=R o\n"
		my     = "[sso-session my]\nsso_region=us-east-1\nsso_start_url=https://x/start\n"
		assume = "POST / Action=AssumeRole&DurationSeconds=900&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=NAME&Version=2011-06-15 with "
		portal = "GET /federation/credentials account_id=12&role_name=R+o with "
		token  = "PUT /latest/api/token"
		list   = "GET /latest/meta-data/iam/security-credentials/"
	)
	later, past := `"expiresAt":"2099-01-01T00:00:00Z"`, `"expiresAt":"2020-01-01T00:00:00Z"`
	tests := map[string]struct {
		env           map[string]string // URL is the services' address, HOME the home folder
		config, creds string
		files         map[string]string
		noToken       bool
		want          string // the keys, or a part of the error
		asked         []string
	}{
		"variables":         {env: map[string]string{"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "ES", "AWS_SESSION_TOKEN": "ET"}, creds: "[default]\n" + static, want: "E ES ET"},
		"their old names":   {env: map[string]string{"AWS_ACCESS_KEY": "E", "AWS_SECRET_KEY": "ES"}, want: "E ES "},
		"half of them":      {env: map[string]string{"AWS_ACCESS_KEY_ID": "E"}, creds: "[default]\n" + static, want: "K KS "},
		"credentials file":  {creds: "\ufeff# c\n[default]\r\naws_access_key_id = K # x\r\nAWS_Secret_Access_Key: 'KS;y'\n\taws_session_token=KT\n", want: "K KS;y KT"},
		"config file":       {config: "[default]\n" + static, want: "K KS "},
		"both files":        {config: "[default]\naws_access_key_id=X\naws_secret_access_key=XS\n", creds: "[default]\n" + static, want: "K KS "},
		"two defaults":      {config: "[profile default]\n" + static + "[default]\naws_access_key_id=X\naws_secret_access_key=XS\n", want: "K KS "},
		"a profile":         {env: map[string]string{"AWS_PROFILE": "p"}, config: "[p]\naws_access_key_id=X\naws_secret_access_key=XS\n[profile   p ] ; c\n" + static, want: "K KS "},
		"the older name":    {env: map[string]string{"AWS_DEFAULT_PROFILE": "p"}, creds: "[p]\n" + static + "[profile p]\naws_access_key_id=X\naws_secret_access_key=XS\n", want: "K KS "},
		"unknown profile":   {env: map[string]string{"AWS_PROFILE": "q"}, creds: "[p]\n" + static, want: "the profile q of AWS_PROFILE"},
		"one key":           {creds: "[default]\naws_access_key_id=K\n", want: "one key without the other"},
		"role":              {config: "[default]\n" + role + "source_profile=s\n[profile s]\n" + static, want: "R RS RT", asked: []string{assume + "K for eu-central-1/sts/aws4_request"}},
		"role, settings":    {config: "[default]\n" + role + "source_profile=s\nexternal_id=e d\nrole_session_name=me\nduration_seconds=3600\n[profile s]\n" + static, want: "R RS RT", asked: []string{"POST / Action=AssumeRole&DurationSeconds=3600&ExternalId=e+d&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=me&Version=2011-06-15 with K for eu-central-1/sts/aws4_request"}},
		"role of a role":    {config: "[default]\n" + role + "source_profile=s\n[profile s]\n" + role + "source_profile=t\n[profile t]\n" + static, want: "R RS RT", asked: []string{assume + "K for eu-central-1/sts/aws4_request", assume + "R for eu-central-1/sts/aws4_request"}},
		"role of itself":    {config: "[default]\n" + role + "source_profile=default\n" + static, want: "R RS RT", asked: []string{assume + "K for eu-central-1/sts/aws4_request"}},
		"roles in a circle": {config: "[default]\n" + role + "source_profile=s\n[profile s]\n" + role + "source_profile=default\n", want: "itself as its source_profile"},
		"role, no source":   {config: "[default]\n" + role + "source_profile=zz\n", want: "the profile zz, a source_profile"},
		"source, no role":   {config: "[default]\nsource_profile=s\n[profile s]\n" + static, want: "has no role_arn"},
		"role with a code":  {config: "[default]\n" + role + "source_profile=s\nmfa_serial=x\n[profile s]\n" + static, want: "MFA"},
		"role forbidden":    {config: "[default]\nrole_arn=arn:aws:iam::1:role/forbidden\n" + static, want: `403 Forbidden: not "you"`, asked: []string{"POST / Action=AssumeRole&DurationSeconds=900&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fforbidden&RoleSessionName=NAME&Version=2011-06-15 with K for eu-central-1/sts/aws4_request"}},
		"role of a machine": {config: "[default]\n" + role + "credential_source=Ec2InstanceMetadata\n", want: "R RS RT", asked: []string{token, list + " with IMDS", list + "my-role with IMDS", assume + "M for eu-central-1/sts/aws4_request"}},
		"role of variables": {env: map[string]string{"AWS_ACCESS_KEY_ID": "E"}, config: "[default]\n" + role + "credential_source=Environment\n", want: "AWS_ACCESS_KEY_ID is not set"},
		"unknown source":    {config: "[default]\n" + role + "credential_source=Nope\n", want: `"Nope"`},
		"web identity": {env: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "HOME/t", "AWS_ROLE_ARN": "arn:r", "AWS_ROLE_SESSION_NAME": "n"}, files: map[string]string{"t": "W T"}, want: "R RS RT",
			asked: []string{"POST / Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Ar&RoleSessionName=n&Version=2011-06-15&WebIdentityToken=W+T"}},
		"web identity, profile": {config: "[default]\nrole_arn=arn:r\nweb_identity_token_file=HOME/t\n", files: map[string]string{"t": "WT"}, want: "R RS RT",
			asked: []string{"POST / Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Ar&RoleSessionName=NAME&Version=2011-06-15&WebIdentityToken=WT"}},
		"web identity, no role": {env: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "HOME/t"}, files: map[string]string{"t": "WT"}, want: "AWS_ROLE_ARN"},
		"sso":                   {config: "[default]\n" + sso + my, files: map[string]string{ssoFile("my"): `{"accessToken":"AT",` + later + `}`}, want: "S SS ST", asked: []string{portal + "AT"}},
		"sso, own addresses":    {config: "[default]\nservices=s\n" + sso + my + "[services s]\nsso =\n  endpoint_url = URL/own\n", env: map[string]string{"AWS_ENDPOINT_URL": ""}, files: map[string]string{ssoFile("my"): `{"accessToken":"AT",` + later + `}`}, want: "400 Bad Request", asked: []string{strings.Replace(portal, "/fed", "/own/fed", 1) + "AT"}},
		"sso, renewed": {config: "[default]\n" + sso + my, files: map[string]string{ssoFile("my"): `{"accessToken":"AT",` + past + `,"refreshToken":"RT","clientId":"CI","clientSecret":"CS","more":{"a":[1]}}`}, want: "S SS ST",
			asked: []string{`POST /token {"clientId":"CI","clientSecret":"CS","grantType":"refresh_token","refreshToken":"RT"}`, portal + "NEW"}},
		"sso, expired":        {config: "[default]\n" + sso + my, files: map[string]string{ssoFile("my"): `{"accessToken":"AT",` + past + `}`}, want: "has expired"},
		"sso, older form":     {config: "[default]\nsso_start_url=https://x/start\nsso_region=us-west-2\nsso_account_id=12\nsso_role_name=R o\n", files: map[string]string{ssoFile("https://x/start"): `{"accessToken":"AT",` + later + `}`}, want: "S SS ST", asked: []string{portal + "AT"}},
		"sso, no session":     {config: "[default]\n" + sso, want: "lacks sso_region"},
		"sso, not signed in":  {config: "[default]\n" + sso + my, want: "no SSO sign-in"},
		"sso, then a role":    {config: "[default]\n" + role + "source_profile=s\n[profile s]\n" + sso + my, files: map[string]string{ssoFile("my"): `{"accessToken":"AT",` + later + `}`}, want: "R RS RT", asked: []string{portal + "AT", assume + "S for eu-central-1/sts/aws4_request"}},
		"aws login":           {config: "[default]\nlogin_session=arn:x\n", files: map[string]string{loginFile("arn:x"): `{"accessToken":{"accessKeyId":"K","secretAccessKey":"KS","sessionToken":"KT",` + later + `}}`}, want: "K KS KT"},
		"aws login, renewed":  {config: "[default]\nlogin_session=arn:x\n", files: map[string]string{loginFile("arn:x"): `{"accessToken":{"accessKeyId":"K","secretAccessKey":"KS","sessionToken":"KT","accountId":"1",` + past + `},"refreshToken":"RT","clientId":"CI","dpopKey":PEM}`}, want: "L LS LT", asked: []string{`POST /v1/token {"clientId":"CI","grantType":"refresh_token","refreshToken":"RT"}`}},
		"aws login, no key":   {config: "[default]\nlogin_session=arn:x\n", files: map[string]string{loginFile("arn:x"): `{"accessToken":{"accessKeyId":"K","secretAccessKey":"KS",` + past + `},"dpopKey":"x"}`}, want: "run aws login again"},
		"container":           {env: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/creds", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "tok"}, want: "C CS CT", asked: []string{"GET /creds with tok"}},
		"container, file":     {env: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/creds", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "HOME/t"}, files: map[string]string{"t": "ft\n"}, want: "C CS CT", asked: []string{"GET /creds with ft"}},
		"container elsewhere": {env: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/creds"}, want: "AWS_CONTAINER_CREDENTIALS_FULL_URI"},
		"machine":             {want: "M MS MT", asked: []string{token, list + " with IMDS", list + "my-role with IMDS"}},
		"machine, version 1":  {noToken: true, want: "M MS MT", asked: []string{token, list, list + "my-role"}},
		"not version 1":       {noToken: true, env: map[string]string{"AWS_EC2_METADATA_V1_DISABLED": "true"}, want: "404 Not Found", asked: []string{token}},
		"no machine":          {env: map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}, want: "no AWS credentials"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.noToken = tt.noToken
			fill := strings.NewReplacer("HOME", os.Getenv("HOME"), "URL", s.URL)
			for k, v := range tt.env {
				t.Setenv(k, fill.Replace(v))
			}
			write(t, ".aws/config", fill.Replace(tt.config))
			write(t, ".aws/credentials", tt.creds)
			der, _ := x509.MarshalECPrivateKey(s.key)
			quoted, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
			for path, text := range tt.files {
				write(t, path, strings.ReplaceAll(text, "PEM", string(quoted)))
			}
			c := &Chain{Client: http.DefaultClient}
			keys, err := c.Keys(t.Context(), "eu-central-1")
			got := keys.ID + " " + keys.Secret + " " + keys.Session
			if err != nil {
				got = err.Error()
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if !slices.Equal(s.asked, tt.asked) {
				t.Errorf("asked\n%s\nwant\n%s", strings.Join(s.asked, "\n"), strings.Join(tt.asked, "\n"))
			}
			if !strings.HasSuffix(name, "renewed") {
				return
			}
			for path := range tt.files {
				text, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), path))
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range []string{`"refreshToken":"NEXT"`, `"clientId":"CI"`} {
					if !strings.Contains(string(text), want) {
						t.Errorf("%s has no %s: %s", path, want, text)
					}
				}
			}
			// What was renewed is in the file, for AWS's tools and for the next start.
			before := len(s.asked)
			if again, err := (&Chain{Client: http.DefaultClient}).Keys(t.Context(), "eu-central-1"); err != nil || again.ID != keys.ID || slices.ContainsFunc(s.asked[before:], func(a string) bool { return strings.HasPrefix(a, "POST") }) {
				t.Errorf("%v %v %v", again, err, s.asked)
			}
		})
	}
}

func TestTemporaryCredentialsAreKeptUntilTheyEnd(t *testing.T) {
	s := start(t)
	c := &Chain{}
	ask := func(want string, requests int) {
		t.Helper()
		keys, err := c.Keys(t.Context(), "eu-central-1")
		if keys.ID != want || (err == nil) != (want != "") || len(s.asked) != requests {
			t.Errorf("%v %v after %d requests, want %s after %d", keys, err, len(s.asked), want, requests)
		}
	}
	ask("M", 3)
	ask("M", 3)
	// Shortly before their end they are replaced, and used to the end while that fails.
	c.kept.Expires = time.Now().Add(fresh / 2)
	s.down = true
	ask("M", 5)
	s.down = false
	ask("M", 8)
	c.kept.Expires = time.Now()
	s.down = true
	ask("", 10)
	// Keys in a file have no end: a new sign-in counts at once.
	write(t, ".aws/credentials", "[default]\naws_access_key_id=K\naws_secret_access_key=KS\n")
	ask("K", 10)
	write(t, ".aws/credentials", "[default]\naws_access_key_id=K2\naws_secret_access_key=KS\n")
	ask("K2", 10)
}

func TestAProgramGivesCredentials(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs here are for sh")
	}
	for program, want := range map[string]string{
		`echo x >> HOME/runs; echo '{"Version":1,"AccessKeyId":"P","SecretAccessKey":"PS","SessionToken":"PT"}'`: "P PS PT",
		`echo '{"Version":2,"AccessKeyId":"P","SecretAccessKey":"leaked"}'`:                                      "no credentials of version 1",
		`echo leaked; exit 3`: "exit status 3",
	} {
		start(t)
		write(t, ".aws/config", "[default]\ncredential_process = "+program+"\n")
		c := &Chain{}
		for range 2 {
			keys, err := c.Keys(t.Context(), "eu-central-1")
			got := fmt.Sprint(keys.ID, " ", keys.Secret, " ", keys.Session)
			if err != nil {
				got = err.Error()
			}
			if got != want && !(err != nil && strings.Contains(got, want)) || strings.Contains(got, "leaked") {
				t.Errorf("%s: %s, want %s", program, got, want)
			}
		}
		if runs, _ := os.ReadFile(filepath.Join(os.Getenv("HOME"), "runs")); want == "P PS PT" && string(runs) != "x\n" {
			t.Errorf("credentials without an end were asked for again: %q", runs)
		}
		// A folder that is not trusted starts nothing and asks nobody.
		var untrusted *guard.UntrustedError
		if _, err := (&Chain{Reason: guard.Reason{Folder: "/p"}}).Keys(context.Background(), "eu-central-1"); !errors.As(err, &untrusted) {
			t.Errorf("untrusted: %v", err)
		}
	}
}

func FuzzProfilesNeverPanic(f *testing.F) {
	f.Add("[default]\nservices=s\n[services s]\nsts =\n  endpoint_url = x\n[a] # b\nc : d ; e\n f")
	f.Fuzz(func(t *testing.T, text string) {
		for name, s := range parseINI(text) {
			for k, v := range s {
				// A setting that is written again reads as itself.
				if strings.ContainsAny(name+k+v, "[]#;=:\"'.\r\n\t") || strings.TrimSpace(k) != k || strings.TrimSpace(name) != name || name == "" || k == "" {
					continue
				}
				if got := parseINI("[" + name + "]\n" + k + "=" + v + "\n")[strings.Join(strings.Fields(name), " ")][k]; got != v {
					t.Errorf("%q = %q in %q reads %q", k, v, name, got)
				}
			}
		}
	})
}
