// Package inotify tells what changed in watched folders until now, without waiting. The kernel queues the event of a change before the system
// call that made it returns, so whoever reads the queue and then looks at what he remembers knows every change that was made before. fsnotify
// reads its queue in a goroutine and cannot say that nothing is left in it. Linux only; elsewhere the package is empty.
package inotify
