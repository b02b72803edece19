package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// arity says how many words of a command "always" keeps: git checkout main → git checkout *. The longest known prefix
// wins; unknown programs keep one word. The figures agree with OpenCode's, so that rules feel alike.
var arity = map[string]int{
	"cat": 1, "cd": 1, "chmod": 1, "chown": 1, "cp": 1, "echo": 1, "export": 1, "grep": 1, "kill": 1, "killall": 1, "ln": 1, "ls": 1, "mkdir": 1, "mv": 1, "ps": 1, "pwd": 1, "rm": 1, "rmdir": 1, "sleep": 1, "tail": 1, "touch": 1, "unset": 1, "which": 1,
	"bazel": 2, "brew": 2, "bun": 2, "cargo": 2, "cdk": 2, "cf": 2, "cmake": 2, "composer": 2, "consul": 2, "crictl": 2, "deno": 2, "docker": 2, "eksctl": 2, "firebase": 2, "flyctl": 2, "git": 2, "go": 2, "gradle": 2, "helm": 2, "hugo": 2, "ip": 2, "kind": 2, "kubectl": 2, "kustomize": 2, "make": 2, "mc": 2, "minikube": 2, "mvn": 2, "ng": 2, "npm": 2, "nvm": 2, "nx": 2, "openssl": 2, "pip": 2, "pip3": 2, "pipenv": 2, "pnpm": 2, "poetry": 2, "podman": 2, "pulumi": 2, "pyenv": 2, "rake": 2, "rbenv": 2, "rustup": 2, "serverless": 2, "skaffold": 2, "sls": 2, "sst": 2, "swift": 2, "systemctl": 2, "terraform": 2, "tmux": 2, "turbo": 2, "ufw": 2, "uv": 2, "vault": 2, "vercel": 2, "volta": 2, "wp": 2, "yarn": 2, "dotnet": 2, "flutter": 2, "mix": 2, "zig": 2, "just": 2, "task": 2, "hatch": 2, "pdm": 2, "bundle": 2, "gem": 2, "apt": 2, "apt-get": 2, "heroku": 2, "redis-cli": 2, "mongosh": 2,
	"aws": 3, "az": 3, "doctl": 3, "gcloud": 3, "gh": 3, "glab": 3, "sfdx": 3, "bun run": 3, "bun x": 3, "cargo add": 3, "cargo run": 3, "consul kv": 3, "deno task": 3, "docker builder": 3, "docker compose": 3, "docker container": 3, "docker image": 3, "docker network": 3, "docker volume": 3, "eksctl create": 3, "git config": 3, "git remote": 3, "git stash": 3, "ip addr": 3, "ip link": 3, "ip netns": 3, "ip route": 3, "kind create": 3, "kubectl kustomize": 3, "kubectl rollout": 3, "mc admin": 3, "npm exec": 3, "npm init": 3, "npm run": 3, "npm view": 3, "openssl req": 3, "openssl x509": 3, "pnpm dlx": 3, "pnpm exec": 3, "pnpm run": 3, "podman container": 3, "podman image": 3, "pulumi stack": 3, "terraform workspace": 3, "vault auth": 3, "vault kv": 3, "yarn dlx": 3, "yarn run": 3, "composer run": 3, "uv pip": 3, "dotnet ef": 3,
}

// alwaysOf is what "always" remembers of a call: its first words and " *", or the exact text when an option stands
// among those words, since git -c … * would allow anything. Empty when no pattern can say it.
func alwaysOf(text string, args []scan.Word, name string) string {
	words := []string{name}
	for _, a := range args[1:] {
		s, ok := a.One()
		if !ok || len(words) >= 3 {
			break
		}
		words = append(words, s)
	}
	n := 1
	for k := min(len(words), 3); k > 0; k-- {
		if v, ok := arity[strings.Join(words[:k], " ")]; ok {
			n = v
			break
		}
	}
	if len(words) > 2 && name == "cargo" && strings.HasPrefix(words[1], "+") {
		n = 3 // cargo +nightly build
	}
	exact := text
	if strings.ContainsAny(exact, "*?$`\\\n") || strings.HasPrefix(exact, "~") {
		exact = ""
	}
	first, _, _ := strings.Cut(text, " ")
	if len(args) < n || len(words) < n && len(args) > len(words) {
		if len(args) < n && exact != "" {
			return exact
		}
		return exact
	}
	prefix := []string{first}
	for _, word := range words[1:min(n, len(words))] {
		if strings.HasPrefix(word, "-") || strings.ContainsAny(word, " *?$`\\/=~\n") {
			return exact
		}
		prefix = append(prefix, word)
	}
	if strings.ContainsAny(first, "*?") {
		return ""
	}
	return strings.Join(prefix, " ") + " *"
}
