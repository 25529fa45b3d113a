// Models of every family, offered in every client format.
import { CLIENT_FORMATS } from '../formats.ts'

export const ALL_DOORS = [...CLIENT_FORMATS]

/** Opens every door for every text model: conversion then serves what the vendor does not speak. */
export function openAllDoors(document: { models: Record<string, { type: string; clientFormats?: string[] }> }): void {
  for (const model of Object.values(document.models)) if (model.type === 'text') model.clientFormats = ALL_DOORS
}

export const GEMINI_MODEL = 'delta-own'
/** One model for every way in which a request may reach a vendor: each family, and each format. */
export const EVERY_KIND = [
  'alpha-5.4',
  'alpha-6-astra',
  'beta-haiku-4-5',
  'beta-sonnet-5',
  'gamma-v4-pro',
  'delta-3.8-flash',
  GEMINI_MODEL,
  'epsilon-k3',
  'zeta-m3',
]
/** With those that take thoughts in other ways. */
export const FAMILIES = [...EVERY_KIND, 'beta-sonnet-4-6', 'beta-opus-4-5', 'beta-opus-5-5']
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

/** A city, as a tool takes it and as a structured answer has it. */
const CITY = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
} as const
export const OUTCOME = { name: 'outcome', schema: CITY, strict: true }
export const WEATHER_QUESTION = 'What is the weather in Oslo? Use get_weather.'
export const WEATHER = { name: 'get_weather', description: 'The current weather in a city.', parameters: CITY } as const
