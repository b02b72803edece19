package awsauth

import (
	"os"
	"path/filepath"
	"strings"
)

// section is a section of AWS's files, by keys in lower case. A setting inside another one has both names: "sts.endpoint_url".
type section map[string]string

// readProfiles reads the config file and the credentials file. Profiles have their plain names; "sso-session x" and "services x" keep
// theirs. The credentials file wins where both have a setting. A file that cannot be read counts as empty, as for AWS's tools.
func readProfiles() map[string]section {
	config := parseINI(readFile("AWS_CONFIG_FILE", "config"))
	all := map[string]section{}
	for name, s := range config {
		plain, isProfile := strings.CutPrefix(name, "profile ")
		switch {
		// The default profile may be written in both ways; the longer one counts.
		case name == "default" && config["profile default"] != nil:
		case isProfile, name == "default", strings.HasPrefix(name, "sso-session "), strings.HasPrefix(name, "services "):
			all[plain] = s
		}
	}
	for name, s := range parseINI(readFile("AWS_SHARED_CREDENTIALS_FILE", "credentials")) {
		if strings.HasPrefix(name, "profile ") {
			continue // this file writes names without it
		}
		if all[name] == nil {
			all[name] = section{}
		}
		// Keys belong together: those of one file are not completed by the other's.
		if s["aws_access_key_id"] != "" && s["aws_secret_access_key"] != "" {
			delete(all[name], "aws_session_token")
		}
		for k, v := range s {
			all[name][k] = v
		}
	}
	return all
}

// readFile reads the file that a variable names, else the one in ~/.aws.
func readFile(variable, name string) string {
	at := os.Getenv(variable)
	if at == "" {
		at = filepath.Join(dotAWS(), name)
	}
	text, _ := os.ReadFile(at)
	return string(text)
}

// dotAWS is the folder of AWS's files.
func dotAWS() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ".aws"
	}
	return filepath.Join(home, ".aws")
}

// parseINI reads the sections of a file. What it does not understand is passed over.
func parseINI(text string) map[string]section {
	all := map[string]section{}
	var in section
	key := "" // the setting that an indented line may continue
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		head := trimmed
		for _, mark := range []string{"#", ";"} {
			head, _, _ = strings.Cut(head, mark)
		}
		if head = strings.TrimSpace(head); strings.HasPrefix(head, "[") && strings.HasSuffix(head, "]") {
			name := strings.Join(strings.Fields(head[1:len(head)-1]), " ")
			if in = all[name]; in == nil {
				in = section{}
				all[name] = in
			}
			key = ""
			continue
		}
		for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
			trimmed, _, _ = strings.Cut(trimmed, mark)
		}
		i := strings.IndexAny(trimmed, "=:")
		if in == nil || i < 0 {
			continue
		}
		name, value := strings.ToLower(strings.TrimSpace(trimmed[:i])), strings.TrimSpace(trimmed[i+1:])
		if n := len(value); n >= 2 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
			value = value[1 : n-1]
		}
		indented := line[0] == ' ' || line[0] == '\t'
		switch {
		case indented && key != "" && in[key] == "":
			in[key+"."+name] = value
		default:
			key = name
			in[name] = value
		}
	}
	return all
}
