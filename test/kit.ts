// What nearly every test file begins with, under one name.
export { default as assert } from 'node:assert/strict'
export { after, afterEach, before, beforeEach, describe, type TestContext, type TestOptions, test } from 'node:test'
export * from './lists.ts'
export * from './runs.ts'
export * from './started.ts'
export * from './until.ts'
