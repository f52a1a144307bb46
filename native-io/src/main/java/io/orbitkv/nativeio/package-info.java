/** The only door to the operating system: memory, direct files, io_uring. */
package io.orbitkv.nativeio;
