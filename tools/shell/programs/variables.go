package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// dangerous reports a variable that can change what programs run or load: it says where they find other programs, libraries, plugins,
// configuration, an editor, a pager, a proxy or a server. Through a variable that is missing here a command could start any program
// without approval; a variable that need not be here only costs approval requests.
func dangerous(name string) bool {
	switch name {
	case "PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH", "PS4", "PROMPT_COMMAND", "GLOBIGNORE", "HOME", "SHELL", "ZDOTDIR",
		"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PERL5LIB", "PERL5OPT", "PERLLIB", "PERL5DB", "RUBYOPT",
		"RUBYLIB", "LUA_PATH", "LUA_CPATH", "LUA_INIT",
		"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "BUN_OPTIONS", "DENO_DIR", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
		"JAVA_HOME", "CLASSPATH", "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "JAVA_OPTS",
		"EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "LESS", "SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR",
		"CC", "CXX", "LD", "AR", "AS", "CPP", "MAKE", "MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS", "CFLAGS_EXEC", "RUSTC", "RUSTC_WRAPPER",
		"RUSTC_WORKSPACE_WRAPPER", "RUSTDOC", "RUSTFLAGS", "CARGO_HOME", "RUSTUP_TOOLCHAIN", "RUSTUP_HOME",
		"GOROOT", "GOPATH", "GOBIN", "GOTOOLDIR", "GOPROXY", "GONOSUMDB", "GOFLAGS", "GOENV", "GOTOOLCHAIN", "GOCACHEPROG", "TAR_OPTIONS",
		"RSYNC_RSH", "RSYNC_PROXY", "CVS_RSH", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH", "FZF_DEFAULT_COMMAND",
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CONFIG_DIRS", "GCONV_PATH", "TERMINFO", "HOSTALIASES", "LOCPATH", "OPENSSL_CONF", "OPENSSL_ENGINES",
		"CURL_HOME", "WGETRC", "DOCKER_HOST", "DOCKER_CONFIG", "KUBECONFIG", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "UV_INDEX_URL",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "SSL_CERT_FILE", "NODE_TLS_REJECT_UNAUTHORIZED",
		"NODE_EXTRA_CA_CERTS", "TMPDIR", "FPATH", "HISTFILE", "INPUTRC", "BASH_COMPAT", "EXECIGNORE", "FIGNORE", "DOTNET_STARTUP_HOOKS",
		"PSModulePath", "ELECTRON_RUN_AS_NODE", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE", "R_ENVIRON", "JULIA_LOAD_PATH", "OPAMSWITCH",
		"SHELL_SESSION_DIR", "KUBE_EDITOR", "KUBECTL_EXTERNAL_DIFF", "HGEDITOR", "SVN_EDITOR", "GH_EDITOR", "GH_PAGER", "GH_BROWSER", "BAT_PAGER",
		"DELTA_PAGER", "SYSTEMD_EDITOR", "SYSTEMD_PAGER", "DBUS_SESSION_BUS_ADDRESS",
		"GOAUTH", "PKG_CONFIG", "GCC_EXEC_PREFIX", "COMPILER_PATH", "FC", "RANLIB", "NM", "STRIP", "OBJCOPY", "CMAKE_C_COMPILER_LAUNCHER",
		"CMAKE_CXX_COMPILER_LAUNCHER", "CCACHE_PREFIX", "CCACHE_COMPILER", "CCACHE_CONFIGPATH",
		"OPENSSL_MODULES", "SSLKEYLOGFILE", "LLVM_PROFILE_FILE", "GCOV_PREFIX", "GTK_MODULES", "QT_PLUGIN_PATH", "GLIBC_TUNABLES", "HGRCPATH",
		"SVN_SSH", "BASH_LOADABLES_PATH", "FZF_DEFAULT_OPTS", "BAT_CONFIG_PATH", "YARN_YARN_PATH", "YARN_RC_FILENAME",
		"BUNDLE_GEMFILE", "GEM_HOME", "GEM_PATH", "RUBYSHELL", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ELIXIR_ERL_OPTIONS", "ERL_LIBS", "JVM_OPTS",
		"SBT_OPTS", "R_LIBS", "R_HOME", "R_PROFILE_USER", "R_ENVIRON_USER", "AWKPATH", "AWKLIBPATH", "LUA_INIT_5_3", "LUA_INIT_5_4",
		"TF_CLI_CONFIG_FILE", "TF_CLI_ARGS", "TF_LOG_PATH", "ANSIBLE_CONFIG", "ANSIBLE_LIBRARY", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
		"PSQLRC", "PSQL_EDITOR", "PSQL_PAGER", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONEXECUTABLE", "NODE_V8_COVERAGE",
		"NODE_REDIRECT_WARNINGS", "NODE_COMPILE_CACHE",
		"COMSPEC", "MANROFFOPT", "MANOPT", "TEXMFCNF", "CABAL_CONFIG", "GHC_PACKAGE_PATH":
		return true
	}
	// LD_ and DYLD_ are for the dynamic loaders (ld.so(8), dyld(1)), COR_ and CORECLR_ load profilers into .NET, BASH_FUNC_ defines
	// shell functions, and PILLION_ marks the processes that belong to Pillion.
	for _, prefix := range [...]string{"LD_", "DYLD_", "GIT_", "npm_config_", "NPM_CONFIG_", "BASH_FUNC_", "COR_", "CORECLR_", "CARGO_TARGET_",
		"CARGO_BUILD_", "CARGO_ALIAS_", "SSH_", "PILLION_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Variable returns why an assignment may change what runs, as a reason for people; empty if it is harmless. Some values of dangerous
// variables are harmless and common (NODE_OPTIONS=--max-old-space-size=4096), so they need no approval.
func (*Set) Variable(a scan.Assignment) string {
	name, vals := a.Name, a.Values
	// There are too many variables like CFLAGS to list. With -fplugin or -B in them, a compiler loads other code.
	if strings.HasSuffix(name, "FLAGS") && name != "MAKEFLAGS" && !dangerous(name) {
		for _, v := range vals {
			if !v.Exact() || riskyFlags(v.Text) {
				return "it sets " + name + ", by which compilers may start or load something else"
			}
		}
	}
	if !dangerous(name) {
		return ""
	}
	switch name {
	// Lists of folders to search, or files to write: harmless if all are in the project.
	case "PYTHONPATH", "NODE_PATH", "GOBIN", "GOPATH", "TMPDIR", "RUBYLIB", "CLASSPATH", "BUNDLE_GEMFILE", "GEM_HOME", "GEM_PATH",
		"LLVM_PROFILE_FILE", "GCOV_PREFIX", "NODE_V8_COVERAGE", "NODE_REDIRECT_WARNINGS", "NODE_COMPILE_CACHE", "TF_LOG_PATH", "SSLKEYLOGFILE",
		"R_LIBS", "ERL_LIBS", "CARGO_TARGET_DIR":
		if a.Inside() {
			return ""
		}
	// GOPROXY=off and GOFLAGS=-mod=mod are common and harmless; a value with an address or a path is not.
	case "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "RUSTFLAGS":
		if safeFlags(vals) {
			return ""
		}
	case "NODE_OPTIONS":
		if harmlessFlags(vals, nodeFlags) {
			return ""
		}
	case "JAVA_OPTS", "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JVM_OPTS", "SBT_OPTS":
		if harmlessFlags(vals, javaFlags) {
			return ""
		}
	// cat only prints, and an empty value turns the pager off.
	case "GIT_PAGER", "PAGER", "MANPAGER":
		if len(vals) == 1 && (vals[0].Text == "cat" || vals[0].Text == "") {
			return ""
		}
	// Names and dates for commits, and switches that name no program.
	case "GIT_TERMINAL_PROMPT", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
		"GIT_COMMITTER_DATE", "GIT_TRACE_PERFORMANCE":
		return ""
	case "GIT_OPTIONAL_LOCKS": // 0 is harmless; otherwise git status may write the index and run a hook
		if len(vals) == 1 && vals[0].Text == "0" {
			return ""
		}
	// true and : change nothing; they are the usual way to commit or rebase without an editor.
	case "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR", "VISUAL":
		if len(vals) == 1 && (vals[0].Text == "true" || vals[0].Text == ":") {
			return ""
		}
	// These names find the compilers of the system, which would run anyway.
	case "CC", "CXX":
		if len(vals) == 1 {
			switch vals[0].Text {
			case "gcc", "clang", "cc", "g++", "clang++", "c++":
				return ""
			}
		}
	}
	return "it sets " + name + ", which changes what programs run or load"
}

// safeFlags reports that flags name no program, file or server. -exec, -vettool and linker options start a program, -overlay replaces
// files, and a slash may be part of a path.
func safeFlags(vals []scan.Value) bool {
	for _, v := range vals {
		if !v.Exact() || strings.Contains(v.Text, "exec") || strings.Contains(v.Text, "linker") || strings.Contains(v.Text, "://") ||
			strings.Contains(v.Text, "vettool") || strings.Contains(v.Text, "overlay") || strings.Contains(v.Text, "/") {
			return false
		}
	}
	return len(vals) > 0
}

// riskyFlags reports compiler flags by which the compiler may start a program or load code that the flags name: -B and -specs change
// which programs it uses, -wrapper starts its programs through another one, -fplugin and -load load code, and "@" reads more flags
// from a file (gcc(1), "Overall Options" and "Directory Options").
func riskyFlags(val string) bool {
	for f := range strings.FieldsSeq(val) {
		if strings.HasPrefix(f, "-fplugin") || strings.HasPrefix(f, "-B") || strings.HasPrefix(f, "-wrapper") || strings.HasPrefix(f, "-specs") ||
			strings.HasPrefix(f, "--specs") || strings.HasPrefix(f, "-fuse-ld=/") || f == "-load" || strings.HasPrefix(f, "@") {
			return true
		}
	}
	return false
}

// nodeFlags and javaFlags are the options that are harmless in NODE_OPTIONS, JAVA_OPTS and the like: they set limits, log output or
// language features. One that ends in "=" takes any value without a slash or a comma (harmlessFlag). All other options count as
// dangerous, because some load code or start a program: --require, -javaagent, -XX:OnError.
const (
	nodeFlags = "--max-old-space-size= --max_old_space_size= --max-semi-space-size= --stack-size= --stack-trace-limit= --max-http-header-size= " +
		"--no-warnings --trace-warnings --no-deprecation --trace-deprecation --enable-source-maps --experimental-vm-modules --openssl-legacy-provider " +
		"--unhandled-rejections= --dns-result-order= --experimental-strip-types --experimental-specifier-resolution= --preserve-symlinks " +
		"--trace-uncaught --expose-gc --expose_gc"
	javaFlags = "-Xmx= -Xms= -Xss= -Xmn= -ea -XX:MaxMetaspaceSize= -XX:+UseG1GC -XX:+UseParallelGC -XX:+UseSerialGC -XX:+UseZGC " +
		"-XX:MaxRAMPercentage= -XX:ReservedCodeCacheSize= -XX:TieredStopAtLevel= -Dfile.encoding= -Djava.awt.headless= -Duser.timezone= " +
		"-Duser.language= -Duser.country= -Dorg.gradle.daemon= -Dorg.gradle.parallel= -Dorg.gradle.workers.max= -Dorg.gradle.caching= " +
		"-Dorg.slf4j.simpleLogger.defaultLogLevel= -Djansi.force= -Dstyle.color="
)

// harmlessFlags reports that every word of every possible value is an option in flags. Without values, what the variable holds is
// unknown, and the result is false.
func harmlessFlags(vals []scan.Value, flags string) bool {
	for _, v := range vals {
		if !v.Exact() {
			return false
		}
		for word := range strings.FieldsSeq(v.Text) {
			if !harmlessFlag(word, flags) {
				return false
			}
		}
	}
	return len(vals) > 0
}

// harmlessFlag reports that a word is one of the options in flags. The option's value may have only letters, digits and ".-+_": a slash
// may be part of a path to a file that is loaded or written, and a comma may begin another option.
func harmlessFlag(word, flags string) bool {
	for flag := range strings.FieldsSeq(flags) {
		stem, takes := strings.CutSuffix(flag, "=")
		rest, ok := strings.CutPrefix(word, stem)
		if !ok || !takes && rest != "" {
			continue
		}
		if !takes || strings.Trim(strings.TrimPrefix(rest, "="), "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+_") == "" {
			return true
		}
	}
	return false
}
