package awsauth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
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
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/whole"
)

// maxAnswer is how much of a service's answer is read, in bytes. Real ones have a few thousand.
const maxAnswer = 1 << 20

// call asks a service and decodes its answer: JSON into a struct, plain text into a string. An error quotes what the service says of a
// failure, which holds no secrets.
func call(ctx context.Context, client *http.Client, method, address string, header http.Header, body []byte, into any) error {
	q, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range header {
		if values[0] != "" {
			q.Header[name] = values
		}
	}
	resp, err := client.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s%s", q.URL.Host, resp.Status, complaint(text))
	}
	if s, ok := into.(*string); ok {
		*s = string(text)
		return nil
	}
	if json.Unmarshal(text, into) != nil {
		return fmt.Errorf("%s answered something else than JSON", q.URL.Host)
	}
	return nil
}

// complaint is what a service says of a failure, after a colon: in JSON, or in the XML of STS.
func complaint(text []byte) string {
	var said struct {
		Message     string `json:"message"` // also Message
		Description string `json:"error_description"`
		Error       any    `json:"error"`
	}
	_ = json.Unmarshal(text, &said)
	code, _ := said.Error.(string)
	for _, s := range []string{said.Message, said.Description, code, element(string(text), "Message")} {
		if s != "" {
			return ": " + s
		}
	}
	return ""
}

// element is the text of the first XML element of a name.
func element(text, name string) string {
	_, text, _ = strings.Cut(text, "<"+name+">")
	text, _, ok := strings.Cut(text, "</"+name+">")
	if !ok {
		return ""
	}
	return html.UnescapeString(text)
}

// service is the address of one of AWS's services: what a variable or the profile says (as for private networks), else the public one.
// variable is its name in AWS_ENDPOINT_URL_…, host the public one.
func (s *search) service(variable, host string) string {
	if !strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		name := strings.ToLower(variable) + ".endpoint_url"
		for _, at := range []string{os.Getenv("AWS_ENDPOINT_URL_" + variable), os.Getenv("AWS_ENDPOINT_URL"), s.profiles["services "+s.profile["services"]][name], s.profile["endpoint_url"]} {
			if at != "" {
				return strings.TrimRight(at, "/")
			}
		}
	}
	return "https://" + host
}

// domain is the end of the addresses of a region's partition.
func domain(region string) string {
	for prefix, domain := range map[string]string{
		"cn-": "amazonaws.com.cn", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov", "eu-isoe-": "cloud.adc-e.uk", "us-isof-": "csp.hci.ic.gov", "eusc-": "amazonaws.eu",
	} {
		if strings.HasPrefix(region, prefix) {
			return domain
		}
	}
	return "amazonaws.com"
}

// webIdentity trades a token in a file, as Kubernetes and CI systems write it, for credentials of a role.
func (s *search) webIdentity(ctx context.Context, file, role, session string) (Keys, error) {
	if role == "" {
		return Keys{}, errors.New("a web identity needs a role; set AWS_ROLE_ARN, or role_arn in the profile")
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return Keys{}, fmt.Errorf("the token of the web identity: %w", err)
	}
	return s.sts(ctx, nil, url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "RoleArn": {role}, "RoleSessionName": {sessionName(session)}, "WebIdentityToken": {string(token)},
	})
}

// assumeRole trades keys for those of a profile's role.
func (s *search) assumeRole(ctx context.Context, name string, p section, keys Keys) (Keys, error) {
	if p["mfa_serial"] != "" {
		return Keys{}, fmt.Errorf("the role of the profile %s needs a code of an MFA device, which cannot be asked for; sign in with the AWS CLI and use temporary keys", name)
	}
	// In seconds. AWS's tools take a profile's figure only above their own of 15 minutes.
	duration := 900
	if n, err := strconv.Atoi(p["duration_seconds"]); err == nil && n > duration {
		duration = n
	}
	form := url.Values{"Action": {"AssumeRole"}, "RoleArn": {p["role_arn"]}, "RoleSessionName": {sessionName(p["role_session_name"])}, "DurationSeconds": {strconv.Itoa(duration)}}
	if id := p["external_id"]; id != "" {
		form.Set("ExternalId", id)
	}
	return s.sts(ctx, &keys, form)
}

// sessionName is a name for the audit log of the account.
func sessionName(own string) string {
	if own != "" {
		return own
	}
	return "pillion-" + strconv.FormatInt(time.Now().UnixNano(), 10)
}

// sts asks the Security Token Service, signed where there are keys.
func (s *search) sts(ctx context.Context, keys *Keys, form url.Values) (Keys, error) {
	form.Set("Version", "2011-06-15")
	at := s.service("STS", "sts."+s.region+"."+domain(s.region)) + "/"
	body := []byte(form.Encode())
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if keys != nil {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, at, nil)
		if err != nil {
			return Keys{}, err
		}
		q.Header = header
		Sign(q, body, *keys, "sts", s.region, time.Now())
	}
	var text string
	if err := call(ctx, s.Client, http.MethodPost, at, header, body, &text); err != nil {
		return Keys{}, err
	}
	expires, err := time.Parse(time.RFC3339, element(text, "Expiration"))
	got := Keys{element(text, "AccessKeyId"), element(text, "SecretAccessKey"), element(text, "SessionToken"), expires}
	if err != nil || got.ID == "" || got.Secret == "" || got.Session == "" {
		return Keys{}, errors.New("the Security Token Service sent no credentials")
	}
	return got, nil
}

// identityCenter asks IAM Identity Center (SSO) for credentials, with the token that "aws sso login" has left in a file.
func (s *search) identityCenter(ctx context.Context, name string, p section) (Keys, error) {
	key, region, start := p["sso_start_url"], p["sso_region"], p["sso_start_url"]
	session := p["sso_session"]
	if session != "" {
		at := s.profiles["sso-session "+session]
		key, region, start = session, at["sso_region"], at["sso_start_url"]
	}
	if region == "" || start == "" || p["sso_account_id"] == "" || p["sso_role_name"] == "" {
		return Keys{}, fmt.Errorf("the profile %s uses SSO and lacks sso_region, sso_start_url, sso_account_id or sso_role_name", name)
	}
	sum := sha1.Sum([]byte(key)) // how AWS's tools name the file
	token, err := s.ssoToken(ctx, filepath.Join(dotAWS(), "sso", "cache", hex.EncodeToString(sum[:])+".json"), region, session != "")
	if err != nil {
		return Keys{}, err
	}
	at := s.service("SSO", "portal.sso."+region+"."+domain(region)) + "/federation/credentials?" +
		url.Values{"account_id": {p["sso_account_id"]}, "role_name": {p["sso_role_name"]}}.Encode()
	var said struct {
		RoleCredentials struct {
			AccessKeyID     string `json:"accessKeyId"`
			SecretAccessKey string `json:"secretAccessKey"`
			SessionToken    string `json:"sessionToken"`
			Expiration      int64  `json:"expiration"` // in milliseconds
		} `json:"roleCredentials"`
	}
	if err := call(ctx, s.Client, http.MethodGet, at, http.Header{"X-Amz-Sso_bearer_token": {token}}, nil, &said); err != nil {
		return Keys{}, err
	}
	v := said.RoleCredentials
	if v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return Keys{}, errors.New("IAM Identity Center sent no credentials")
	}
	return Keys{v.AccessKeyID, v.SecretAccessKey, v.SessionToken, time.UnixMilli(v.Expiration)}, nil
}

// tokenFile is a file in which AWS's tools keep a sign-in. Fields that are not known stay as they are.
type tokenFile map[string]json.RawMessage

func readToken(path string) (tokenFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var t tokenFile
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, errors.New("the file of the AWS sign-in is not JSON; sign in again")
	}
	return t, nil
}

func (t tokenFile) text(name string) string {
	var s string
	_ = json.Unmarshal(t[name], &s)
	return s
}

func (t tokenFile) set(name string, v any) { t[name], _ = json.Marshal(v) }

// write replaces the file at once and keeps its mode: another tool may read it meanwhile.
func (t tokenFile) write(path string) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return whole.Write(path, text, mode)
}

// ssoToken is the access token of a sign-in, renewed when it has expired and the file has what that needs.
func (s *search) ssoToken(ctx context.Context, path, region string, renewable bool) (string, error) {
	t, err := readToken(path)
	if err != nil {
		return "", fmt.Errorf("no SSO sign-in: %w", err)
	}
	expires, err := time.Parse(time.RFC3339, t.text("expiresAt"))
	if err != nil || t.text("accessToken") == "" {
		return "", errors.New("the SSO sign-in has no accessToken and expiresAt; sign in again")
	}
	if time.Now().Before(expires) {
		return t.text("accessToken"), nil
	}
	if !renewable || t.text("clientId") == "" || t.text("clientSecret") == "" || t.text("refreshToken") == "" {
		return "", errors.New("the SSO sign-in has expired")
	}
	body, _ := json.Marshal(map[string]string{
		"clientId": t.text("clientId"), "clientSecret": t.text("clientSecret"), "grantType": "refresh_token", "refreshToken": t.text("refreshToken"),
	})
	var said struct {
		AccessToken  string `json:"accessToken"`
		ExpiresIn    int    `json:"expiresIn"` // in seconds
		RefreshToken string `json:"refreshToken"`
	}
	at := s.service("SSO_OIDC", "oidc."+region+"."+domain(region)) + "/token"
	if err := call(ctx, s.Client, http.MethodPost, at, http.Header{"Content-Type": {"application/json"}}, body, &said); err != nil {
		return "", fmt.Errorf("the SSO sign-in has expired, and cannot be renewed: %w", err)
	}
	if said.AccessToken == "" {
		return "", errors.New("the SSO sign-in has expired, and its renewal has no token")
	}
	t.set("accessToken", said.AccessToken)
	t.set("expiresAt", time.Now().Add(time.Duration(said.ExpiresIn)*time.Second).UTC().Format(time.RFC3339))
	t.set("refreshToken", said.RefreshToken)
	// The old refresh token is used up, so a new one that is not kept would end the sign-in.
	if err := t.write(path); err != nil {
		return "", fmt.Errorf("the renewed SSO sign-in could not be kept: %w", err)
	}
	return said.AccessToken, nil
}

// login takes the credentials that "aws login" has left in a file, and renews them with its key (DPoP, RFC 9449).
func (s *search) login(ctx context.Context, session string) (Keys, error) {
	dir := os.Getenv("AWS_LOGIN_CACHE_DIRECTORY")
	if dir == "" {
		dir = filepath.Join(dotAWS(), "login", "cache")
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(session)))
	path := filepath.Join(dir, hex.EncodeToString(sum[:])+".json")
	t, err := readToken(path)
	if err != nil {
		return Keys{}, fmt.Errorf("no sign-in of aws login: %w", err)
	}
	type access struct {
		AccessKeyID     string `json:"accessKeyId"`
		SecretAccessKey string `json:"secretAccessKey"`
		SessionToken    string `json:"sessionToken"`
	}
	var kept struct {
		access
		AccountID string    `json:"accountId"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	if err := json.Unmarshal(t["accessToken"], &kept); err != nil || kept.AccessKeyID == "" || kept.SecretAccessKey == "" {
		return Keys{}, errors.New("the sign-in of aws login has no accessToken; run aws login again")
	}
	if time.Now().Before(kept.ExpiresAt) {
		return Keys{kept.AccessKeyID, kept.SecretAccessKey, kept.SessionToken, kept.ExpiresAt}, nil
	}
	host := s.region + ".signin.aws.amazon.com"
	switch {
	case strings.HasPrefix(s.region, "cn-"):
		host = s.region + ".signin.amazonaws.cn"
	case strings.HasPrefix(s.region, "us-gov-"):
		host = s.region + ".signin.amazonaws-us-gov.com"
	}
	at := s.service("SIGNIN", host) + "/v1/token"
	proof, err := dpop(t.text("dpopKey"), at)
	if err != nil {
		return Keys{}, err
	}
	body, _ := json.Marshal(map[string]string{"clientId": t.text("clientId"), "grantType": "refresh_token", "refreshToken": t.text("refreshToken")})
	var said struct {
		AccessToken  access `json:"accessToken"`
		ExpiresIn    int    `json:"expiresIn"` // in seconds
		RefreshToken string `json:"refreshToken"`
	}
	if err := call(ctx, s.Client, http.MethodPost, at, http.Header{"Content-Type": {"application/json"}, "Dpop": {proof}}, body, &said); err != nil {
		return Keys{}, fmt.Errorf("the sign-in of aws login has expired, and cannot be renewed: %w", err)
	}
	if said.AccessToken.AccessKeyID == "" || said.AccessToken.SecretAccessKey == "" {
		return Keys{}, errors.New("the sign-in of aws login has expired, and its renewal has no keys")
	}
	kept.access, kept.ExpiresAt = said.AccessToken, time.Now().Add(time.Duration(said.ExpiresIn)*time.Second).UTC()
	t.set("accessToken", kept)
	t.set("refreshToken", said.RefreshToken)
	if err := t.write(path); err != nil {
		return Keys{}, fmt.Errorf("the renewed sign-in of aws login could not be kept: %w", err)
	}
	return Keys{kept.AccessKeyID, kept.SecretAccessKey, kept.SessionToken, kept.ExpiresAt}, nil
}

// dpop proves to address that we have the key which the sign-in was made for.
func dpop(keyPEM, address string) (string, error) {
	block, _ := pem.Decode([]byte(keyPEM))
	if block == nil {
		return "", errors.New("the sign-in of aws login has no key; run aws login again")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return "", errors.New("the key of aws login cannot be read; run aws login again")
	}
	public, err := key.PublicKey.ECDH()
	if err != nil || len(public.Bytes()) != 1+2*32 {
		return "", errors.New("the key of aws login is not one of P-256; run aws login again")
	}
	encode := base64.RawURLEncoding.EncodeToString
	point := public.Bytes()[1:]
	head, _ := json.Marshal(map[string]any{"typ": "dpop+jwt", "alg": "ES256", "jwk": map[string]string{"kty": "EC", "crv": "P-256", "x": encode(point[:32]), "y": encode(point[32:])}})
	claims, _ := json.Marshal(map[string]any{"jti": rand.Text(), "htm": http.MethodPost, "htu": address, "iat": time.Now().Unix()})
	signed := encode(head) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	r, v, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	v.FillBytes(signature[32:])
	return signed + "." + encode(signature[:]), nil
}
