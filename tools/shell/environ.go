package shell

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// dangerous lists the variables that change what programs run or load.
func dangerous(name string) bool {
	switch name {
	case "PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH", "PS4", "PROMPT_COMMAND", "GLOBIGNORE", "HOME", "SHELL", "ZDOTDIR",
		"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PERL5LIB", "PERL5OPT", "PERLLIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "LUA_PATH", "LUA_CPATH", "LUA_INIT",
		"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "BUN_OPTIONS", "DENO_DIR", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_HOME", "CLASSPATH", "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "JAVA_OPTS",
		"EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "LESS", "SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR",
		"CC", "CXX", "LD", "AR", "AS", "CPP", "MAKE", "MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS", "CFLAGS_EXEC", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTDOC", "RUSTFLAGS", "CARGO_HOME", "RUSTUP_TOOLCHAIN", "RUSTUP_HOME",
		"GOROOT", "GOPATH", "GOBIN", "GOTOOLDIR", "GOPROXY", "GONOSUMDB", "GOFLAGS", "GOENV", "GOTOOLCHAIN", "GOCACHEPROG", "TAR_OPTIONS", "RSYNC_RSH", "RSYNC_PROXY", "CVS_RSH", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH", "FZF_DEFAULT_COMMAND",
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CONFIG_DIRS", "GCONV_PATH", "TERMINFO", "HOSTALIASES", "LOCPATH", "OPENSSL_CONF", "OPENSSL_ENGINES", "CURL_HOME", "WGETRC", "DOCKER_HOST", "DOCKER_CONFIG", "KUBECONFIG", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "UV_INDEX_URL",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "SSL_CERT_FILE", "NODE_TLS_REJECT_UNAUTHORIZED", "NODE_EXTRA_CA_CERTS", "TMPDIR", "FPATH", "HISTFILE", "INPUTRC", "BASH_COMPAT", "EXECIGNORE", "FIGNORE", "DOTNET_STARTUP_HOOKS", "PSModulePath", "ELECTRON_RUN_AS_NODE", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE", "R_ENVIRON", "JULIA_LOAD_PATH", "OPAMSWITCH", "SHELL_SESSION_DIR", "KUBE_EDITOR", "KUBECTL_EXTERNAL_DIFF", "HGEDITOR", "SVN_EDITOR", "GH_EDITOR", "GH_PAGER", "GH_BROWSER", "BAT_PAGER", "DELTA_PAGER", "SYSTEMD_EDITOR", "SYSTEMD_PAGER", "DBUS_SESSION_BUS_ADDRESS",
		"GOAUTH", "PKG_CONFIG", "GCC_EXEC_PREFIX", "COMPILER_PATH", "FC", "RANLIB", "NM", "STRIP", "OBJCOPY", "CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER", "CCACHE_PREFIX", "CCACHE_COMPILER", "CCACHE_CONFIGPATH",
		"OPENSSL_MODULES", "SSLKEYLOGFILE", "LLVM_PROFILE_FILE", "GCOV_PREFIX", "GTK_MODULES", "QT_PLUGIN_PATH", "GLIBC_TUNABLES", "HGRCPATH", "SVN_SSH", "BASH_LOADABLES_PATH", "FZF_DEFAULT_OPTS", "BAT_CONFIG_PATH", "YARN_YARN_PATH", "YARN_RC_FILENAME",
		"BUNDLE_GEMFILE", "GEM_HOME", "GEM_PATH", "RUBYSHELL", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ELIXIR_ERL_OPTIONS", "ERL_LIBS", "JVM_OPTS", "SBT_OPTS", "R_LIBS", "R_HOME", "R_PROFILE_USER", "R_ENVIRON_USER", "AWKPATH", "AWKLIBPATH", "LUA_INIT_5_3", "LUA_INIT_5_4",
		"TF_CLI_CONFIG_FILE", "TF_CLI_ARGS", "TF_LOG_PATH", "ANSIBLE_CONFIG", "ANSIBLE_LIBRARY", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "PSQLRC", "PSQL_EDITOR", "PSQL_PAGER", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONEXECUTABLE", "NODE_V8_COVERAGE", "NODE_REDIRECT_WARNINGS", "NODE_COMPILE_CACHE",
		"COMSPEC", "MANROFFOPT", "MANOPT", "TEXMFCNF", "CABAL_CONFIG", "GHC_PACKAGE_PATH":
		return true
	}
	for _, prefix := range [...]string{"LD_", "DYLD_", "GIT_", "npm_config_", "NPM_CONFIG_", "BASH_FUNC_", "COR_", "CORECLR_", "CARGO_TARGET_", "CARGO_BUILD_", "CARGO_ALIAS_", "SSH_", "PILLION_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// dangerousName makes the command opaque when an assignment to name changes what runs. vals nil: any value.
func (w *walker) dangerousName(name string, vals []value) {
	if strings.HasSuffix(name, "FLAGS") && name != "MAKEFLAGS" && !dangerous(name) {
		for _, v := range vals {
			if !v.exact() || riskyFlags(v.s) {
				w.opaque("it sets " + name + ", by which compilers may start or load something else")
			}
		}
	}
	if counted[name] && !digits(vals) {
		w.opaque("what is assigned to " + name + " is evaluated as arithmetic")
	}
	if !dangerous(name) {
		return
	}
	switch name {
	case "PYTHONPATH", "NODE_PATH", "GOBIN", "GOPATH", "TMPDIR", "RUBYLIB", "CLASSPATH", "BUNDLE_GEMFILE", "GEM_HOME", "GEM_PATH", "LLVM_PROFILE_FILE", "GCOV_PREFIX", "NODE_V8_COVERAGE", "NODE_REDIRECT_WARNINGS", "NODE_COMPILE_CACHE", "TF_LOG_PATH", "SSLKEYLOGFILE", "R_LIBS", "ERL_LIBS", "CARGO_TARGET_DIR":
		if w.allInside(vals) {
			return
		}
	case "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "RUSTFLAGS":
		if safeFlags(vals) {
			return
		}
	case "NODE_OPTIONS":
		if harmlessFlags(vals, nodeFlags) {
			return
		}
	case "JAVA_OPTS", "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JVM_OPTS", "SBT_OPTS":
		if harmlessFlags(vals, javaFlags) {
			return
		}
	case "GIT_PAGER", "PAGER", "MANPAGER":
		if len(vals) == 1 && (vals[0].s == "cat" || vals[0].s == "") {
			return
		}
	case "GIT_TERMINAL_PROMPT", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "GIT_TRACE_PERFORMANCE":
		return
	case "GIT_OPTIONAL_LOCKS": // with them a hook may run after git status
		if len(vals) == 1 && vals[0].s == "0" {
			return
		}
	case "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR", "VISUAL":
		if len(vals) == 1 && (vals[0].s == "true" || vals[0].s == ":") {
			return
		}
	case "CC", "CXX":
		if len(vals) == 1 {
			switch vals[0].s {
			case "gcc", "clang", "cc", "g++", "clang++", "c++":
				return
			}
		}
	}
	w.opaque("it sets " + name + ", which changes what programs run or load")
}

func digits(vals []value) bool {
	for _, v := range vals {
		if !v.exact() || strings.Trim(v.s, "0123456789") != "" {
			return false
		}
	}
	return len(vals) > 0
}

func (w *walker) allInside(vals []value) bool {
	if len(vals) == 0 {
		return false
	}
	for _, v := range vals {
		if !v.exact() {
			return false
		}
		for part := range strings.SplitSeq(v.s, ":") {
			if part != "" && !strings.HasPrefix(part, "/") {
				part = path.Join(w.req.Dir, part)
			}
			if part != "" && !w.paths.inside(w.paths.real(part), Write) {
				return false
			}
		}
	}
	return true
}

func safeFlags(vals []value) bool {
	for _, v := range vals {
		if !v.exact() || strings.Contains(v.s, "exec") || strings.Contains(v.s, "linker") || strings.Contains(v.s, "://") || strings.Contains(v.s, "vettool") || strings.Contains(v.s, "overlay") || strings.Contains(v.s, "/") {
			return false
		}
	}
	return len(vals) > 0
}

// assignment looks at NAME=value in front of a call or alone.
func (w *walker) assignment(a *syntax.Assign, st *state, readsIFS bool) {
	w.inside(a.Value, st)
	if a.Index != nil {
		w.arithmIndex(a.Index, st)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.arithmIndex(e.Index, st)
			}
			w.inside(e.Value, st)
		}
	}
	if a.Name == nil {
		return
	}
	var vals []value
	if a.Value != nil {
		vals = w.parts(a.Value.Parts, true, st)
	} else if a.Array == nil {
		vals = []value{{}}
	}
	if a.Name.Value == "IFS" && readsIFS {
		return
	}
	w.dangerousName(a.Name.Value, vals)
}

// arithmIndex looks at an index; a quoted or plain word may be the key of an associative array.
func (w *walker) arithmIndex(x syntax.ArithmExpr, st *state) {
	if word, ok := x.(*syntax.Word); ok {
		w.inside(word, st)
		for _, v := range w.parts(word.Parts, true, st) {
			if strings.ContainsAny(v.s, "$`[("+wild) {
				w.opaque("the index of an array is evaluated")
			} else if syntax.ValidName(v.s) {
				w.number(word, st)
			}
		}
		return
	}
	w.arithm(x, st)
}

// declare looks at export, declare, local, readonly, typeset.
func (w *walker) declare(c *syntax.DeclClause, st *state) {
	w.at = int(c.Pos().Offset())
	prints := listsVariables(c)
	w.addCall(Call{Text: w.source(c), Program: c.Variant.Value, ReadOnly: !prints, Silent: !prints})
	var text []string
	evaluates, lists := false, false
	for _, a := range c.Args {
		if a.Naked && a.Name == nil {
			w.inside(a.Value, st)
			for _, field := range w.args(a.Value, st) {
				w.declared(field)
				for _, v := range field.vals {
					if !strings.HasPrefix(v.s, "-") {
						continue
					}
					evaluates = evaluates || strings.Contains(v.s, "i")
					lists = lists || strings.ContainsAny(v.s, "aA")
					if strings.Contains(v.s, "n") && c.Variant.Value != "export" {
						w.opaque("a name reference makes one variable stand for another")
					}
				}
			}
			continue
		}
		if !a.Naked {
			w.assignment(a, st, false)
			if a.Value != nil {
				w.listText(w.parts(a.Value.Parts, true, st), lists)
				w.listText(w.parts(a.Value.Parts, false, st), false) // \( is a parenthesis too
			}
			if evaluates && a.Value != nil {
				w.number(a.Value, st)
			}
			if evaluates && a.Array != nil {
				w.opaque("its values are evaluated")
			}
		}
		text = append(text, a.Name.Value)
	}
	if evaluates {
		// An integer variable evaluates every later assignment too.
		for _, name := range text {
			for _, as := range w.vars[name] {
				if as.word == nil {
					w.opaque("the value of " + name + " is evaluated as arithmetic")
				} else {
					w.number(as.word, st)
				}
			}
		}
	}
}

// declared checks an argument of export and the like that is only known after expansion.
func (w *walker) declared(a arg) {
	for _, v := range a.vals {
		name, val, assigned := strings.Cut(v.s, "=")
		switch {
		case strings.HasPrefix(v.s, "-"), strings.HasPrefix(v.s, "+"):
		case !syntax.ValidName(name):
			w.opaque("which variable is set cannot be said: " + a.src)
		case assigned:
			w.dangerousName(name, []value{literal(val)})
			w.listText([]value{literal(val)}, false)
		}
	}
}

// listText looks at a value given to declare that is no list by its syntax: one in parentheses is read as a list all
// the same, and what stands in it is expanded. array: by an option it surely is.
func (w *walker) listText(vals []value, array bool) {
	for _, v := range vals {
		if array && !v.exact() || strings.HasPrefix(v.s, "(") && (strings.ContainsAny(v.s, "$`") || !v.exact()) {
			w.opaque("a value is read as a list, in which commands may stand")
			return
		}
	}
}

// counted are the variables that bash itself gives numbers: what is assigned to them is evaluated as arithmetic.
var counted = map[string]bool{"RANDOM": true, "SRANDOM": true, "SECONDS": true, "OPTIND": true, "HISTCMD": true, "LINENO": true, "EPOCHSECONDS": true, "EPOCHREALTIME": true, "BASH_MONOSECONDS": true, "BASHPID": true, "BASH_SUBSHELL": true}

// listsVariables reports a declaration without names, which prints all variables with their values, or one that prints
// a variable named like a secret: what it prints would be sent to a model.
func listsVariables(c *syntax.DeclClause) bool {
	names, prints, functions, secret := 0, false, false, false
	for _, a := range c.Args {
		if a.Name != nil {
			names++
			secret = secret || secretVariable("$"+a.Name.Value)
			continue
		}
		lit := a.Value.Lit()
		if !strings.HasPrefix(lit, "-") {
			names++
			continue
		}
		prints = prints || strings.Contains(lit, "p")
		functions = functions || strings.ContainsAny(lit, "fF")
	}
	return names == 0 && !functions || prints && secret
}
