// A model of each family, and the doors at which the shipped catalog offers it.
import { CLIENT_FORMATS } from '../../src/meter/kind.ts'

export const FAMILIES = [
  { model: 'alpha-5.4', clientFormats: ['chat', 'responses'] },
  { model: 'alpha-6-astra', clientFormats: ['chat', 'responses'] },
  { model: 'beta-opus-4-5', clientFormats: ['chat', 'messages'] },
  { model: 'beta-opus-5-5', clientFormats: ['chat', 'messages'] },
  { model: 'gamma-v4-pro', clientFormats: ['chat'] },
  { model: 'delta-3.8-flash', clientFormats: ['chat'] },
  { model: 'epsilon-k3', clientFormats: ['chat'] },
  { model: 'zeta-m3', clientFormats: ['chat'] },
] as const

export const ALL_DOORS = [...CLIENT_FORMATS]

/** Opens every door for every text model: conversion then serves what the vendor does not speak. */
export function openAllDoors(document: { models: Record<string, { type: string; clientFormats?: string[] }> }): void {
  for (const model of Object.values(document.models)) if (model.type === 'text') model.clientFormats = ALL_DOORS
}

const GEMINI_MODEL = 'delta-own'
/** One model for every way in which a request may reach a vendor: each family, and each format. */
export const EVERY_KIND = [
  ...['alpha-5.4', 'alpha-6-astra', 'beta-haiku-4-5', 'beta-sonnet-5'],
  ...['gamma-v4-pro', 'delta-3.8-flash', GEMINI_MODEL, 'epsilon-k3', 'zeta-m3'],
]
/** One for each format, of those. */
export const EVERY_FORMAT = ['alpha-5.4', 'beta-sonnet-5', 'gamma-v4-pro', GEMINI_MODEL]

/** Every format for every text model, and one model whose vendor speaks Google's. */
export function everyKind(document: any): void {
  openAllDoors(document)
  document.vendors.google = { baseUrl: 'sandbox/google', credential: 'DELTA_API_KEY' }
  const { 'delta-3.8-flash': delta } = document.models
  document.models[GEMINI_MODEL] = { ...delta, routes: [{ vendor: 'google', protocol: 'gemini' }] }
}

/** The one that the shipped catalog has closed, for the model that its examples name. */
export function openGoogleDoor({ models }: { models: Record<string, { clientFormats?: string[] }> }): void {
  models['delta-3.8-flash']?.clientFormats?.push('gemini')
}

export const WEATHER = {
  name: 'get_weather',
  description: 'The current weather in a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
} as const
