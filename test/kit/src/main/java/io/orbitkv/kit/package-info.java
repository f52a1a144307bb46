/**
 * What tests of every module share: seeds and generators, a simulated clock and drive, the suite that every ring must
 * pass, leak checks, and payloads that are a function of their key.
 */
package io.orbitkv.kit;
