package programs

// keepsContent reports programs that change a file's mode or time, not what is in it.
func keepsContent(name string) bool {
	return name == "chmod" || name == "chown" || name == "chgrp" || name == "touch"
}

// compiles reports programs whose output is made of the sources that they are given: running it is like running make.
func compiles(name string) bool {
	switch family(name) {
	case "gcc", "rustc", "go", "swiftc", "ghc", "ocamlopt", "nim", "crystal", "zig", "gnatmake", "dmd", "ldc2", "fpc":
		return true
	}
	return false
}
