package quickfix

func run(w *walk) {}
