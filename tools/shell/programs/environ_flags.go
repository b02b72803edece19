package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// Options that programs take from variables and that change neither what runs nor where it writes: how much memory,
// how loud. Those that end in "=" take any value without a path.
// The lists are short on purpose: --require, -javaagent, -XX:OnError and their like load or start something, so an option counts
// as harmless only when it is listed.
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

// harmlessFlags reports that all words of all values are among these options.
// An empty list of values means that the value is not known, which is not harmless.
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

// harmlessFlag reports that a word is one of these options. A value may hold letters, digits and ".-+_" only: a slash
// could name a file to write or load, a comma could begin another option.
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
