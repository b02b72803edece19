-- One conversation: what was said and done, as entries; what is running; its settings. Views listen to it.
local compat = require("pillion.compat")
local config = require("pillion.config")
local log = require("pillion.log")
local process = require("pillion.process")

---@class pillion.Entry
---@field kind "user"|"agent"|"thought"|"tool"|"plan"|"notice"|"ask"|"end"
---@field text? string
---@field pieces? string[] of a text that is still coming
---@field message? string messageId
---@field call? table the tool call, as it is known
---@field plan? table[]
---@field level? string
---@field ask? pillion.Ask

---@class pillion.SessionView
---@field added fun(self, entry: pillion.Entry)
---@field appended fun(self, entry: pillion.Entry, text: string)
---@field changed fun(self, entry: pillion.Entry)
---@field status fun(self)
---@field reset fun(self)

---@class pillion.Session
---@field id? string
---@field cwd string
---@field title? string
---@field entries pillion.Entry[]
---@field running integer prompts that are not answered yet
---@field options table[] configuration options
---@field commands table[] slash commands
---@field usage? table
---@field queue table[] prompts that wait
---@field attached pillion.Context[] for the next prompt
---@field view? pillion.SessionView
local Session = {}
Session.__index = Session

local M = {
  ---@type table<string, pillion.Session>
  by_id = {},
  ---@type pillion.Session?
  current = nil,
}

local function new(cwd)
  return setmetatable({ cwd = cwd, entries = {}, calls = {}, running = 0, options = {}, commands = {}, queue = {}, attached = {}, state = "new" }, Session)
end

local function tell_view(self, what, ...)
  if self.view then
    self.view[what](self.view, ...)
  end
end

function Session:status()
  tell_view(self, "status")
  compat.user_event("PillionStatus", { session = self.id })
end

---@param entry pillion.Entry
function Session:add(entry)
  table.insert(self.entries, entry)
  tell_view(self, "added", entry)
  return entry
end

---@param entry pillion.Entry
function Session:remove(entry)
  for i, e in ipairs(self.entries) do
    if e == entry then
      table.remove(self.entries, i)
      return tell_view(self, "reset")
    end
  end
end

-- A line of Pillion's own in the conversation.
---@param level "info"|"warning"|"error"
---@param words string
function Session:note(level, words)
  self:add({ kind = "notice", level = level, text = words })
end

local function content_text(block)
  if type(block) ~= "table" then
    return ""
  end
  if block.type == "text" then
    return block.text or ""
  elseif block.type == "image" then
    return "(image" .. (block.mimeType and (", " .. block.mimeType) or "") .. ")"
  elseif block.type == "resource_link" then
    return "(" .. (block.name or block.uri or "file") .. ")"
  elseif block.type == "resource" and block.resource then
    return "(" .. (block.resource.uri or "text") .. ")"
  end
  return ""
end
M.content_text = content_text

function Session:chunk(kind, u)
  local words = content_text(u.content)
  if words == "" then
    return
  end
  local last = self.entries[#self.entries]
  if last and last.kind == kind and (kind ~= "user" or last.message == u.messageId) and not last.closed then
    last.pieces[#last.pieces + 1] = words
    return tell_view(self, "appended", last, words)
  end
  self:add({ kind = kind, pieces = { words }, message = u.messageId })
end

function Session:tool(u)
  local entry = self.calls[u.toolCallId]
  if not entry then
    entry = { kind = "tool", call = {} }
    self.calls[u.toolCallId] = entry
    for k, v in pairs(u) do
      entry.call[k] = v
    end
    self:add(entry)
  else
    for k, v in pairs(u) do
      entry.call[k] = v
    end
    tell_view(self, "changed", entry)
  end
  if u.status == "completed" and (entry.call.kind == "execute" or entry.call.kind == "edit" or entry.call.kind == "delete" or entry.call.kind == "move") then
    M.check_disk()
  end
end

local checking = false
-- Buffers follow the disk soon after something may have changed it.
function M.check_disk()
  if not checking then
    checking = true
    vim.defer_fn(function()
      checking = false
      require("pillion.buffers").check_disk()
    end, 100)
  end
end

local updates = {
  user_message_chunk = function(self, u)
    -- A prompt of ours comes back with its id: it is shown already.
    local meta = u._meta and u._meta.pillion or {}
    for _, e in ipairs((meta.own or meta.steered) and self.entries or {}) do
      if e.kind == "user" and e.text and (e.message == u.messageId or not e.message) and (e.steered or false) == (meta.steered or false) then
        e.message = u.messageId
        if e.waiting then
          e.waiting = nil
          tell_view(self, "changed", e)
        end
        return
      end
    end
    self:chunk("user", u)
  end,
  agent_message_chunk = function(self, u)
    self:chunk("agent", u)
  end,
  agent_thought_chunk = function(self, u)
    self:chunk("thought", u)
  end,
  tool_call = Session.tool,
  tool_call_update = Session.tool,
  plan = function(self, u)
    -- The newest plan stays in its place while it is worked on; after other prompts it is a new one.
    if self.plan and not self.plan.closed then
      self.plan.plan = u.entries or {}
      return tell_view(self, "changed", self.plan)
    end
    self.plan = self:add({ kind = "plan", plan = u.entries or {} })
  end,
  available_commands_update = function(self, u)
    self.commands = u.availableCommands or {}
  end,
  current_mode_update = function(self, u)
    self:set_current("mode", u.currentModeId)
  end,
  config_option_update = function(self, u)
    self.options = u.configOptions or self.options
    self:status()
  end,
  session_info_update = function(self, u)
    self.title = u.title or self.title
    self:status()
  end,
  usage_update = function(self, u)
    self.usage = u
    self:status()
  end,
  notice = function(self, u)
    self:note(u.severity or "info", u.title .. (u.description and u.description ~= "" and ("\n" .. u.description) or ""))
  end,
  compaction_update = function(self, u)
    if u.status == "completed" then
      self:note("info", "The conversation was summarised to make room.")
    end
  end,
}

function Session:update(u)
  local f = updates[u.sessionUpdate]
  if f then
    f(self, u)
  end
end

function Session:set_current(id, value)
  for _, o in ipairs(self.options) do
    if o.id == id then
      o.currentValue = value
    end
  end
  self:status()
end

-- The current value of an option: mode, model, thought_level.
---@param id string
---@return table?
function Session:option(id)
  for _, o in ipairs(self.options) do
    if o.id == id then
      return o
    end
  end
end

function Session:change_updated(change)
  compat.user_event("PillionChange", { session = self.id, change = change })
  require("pillion.review").checked(change)
  require("pillion.follow").changed(self, change)
end

function Session:queue_updated(items, held)
  self.queue = items or {}
  if held and not self.held and #self.queue > 0 then
    self:note("info", ("%d queued prompt%s held; :Pillion queue resume goes on with it."):format(#self.queue, #self.queue == 1 and " is" or "s are"))
  end
  self.held = held
  self:status()
end

-- A turn that no request of ours began (a queued prompt) is known by this only.
---@param status pillion.SessionStatusResponse
function Session:status_updated(status)
  local was = self.elsewhere
  self.elsewhere, self.turn = status.state ~= "idle", status.turn
  if was and not self.elsewhere and self.running == 0 then
    self:ended()
  end
  self:status()
end

-- The conversation was taken back to before a prompt; without one it is whole again and follows as updates.
function Session:reverted(message)
  if not message then
    self.entries, self.calls, self.plan = {}, {}, nil
    return tell_view(self, "reset")
  end
  for i, e in ipairs(self.entries) do
    if e.kind == "user" and e.message == message then
      while #self.entries >= i do
        table.remove(self.entries)
      end
      break
    end
  end
  tell_view(self, "reset")
end

---@return boolean
function Session:busy()
  return self.running > 0 or self.elsewhere == true
end

function Session:take_settings(r)
  self.options = r.configOptions or {}
  self.state = "ready"
  local review = self:option("review")
  if config.options.follow and review and review.currentValue ~= "follow" then
    self:set_option("review", "follow")
  end
  self:status()
end

local function with_settings(params)
  local meta = { trusted = config.options.trust, model = config.options.model, agent = config.options.mode }
  if next(meta) then
    params._meta = { pillion = meta }
  end
  return params
end

-- Makes the session in the sidecar, unless it is there.
---@param callback fun(err?: string)
function Session:open(callback)
  if self.state == "ready" and process.state == "ready" then
    return callback()
  end
  self.opening = self.opening or {}
  table.insert(self.opening, callback)
  if #self.opening > 1 then
    return
  end
  local function settle(err)
    local waiting = self.opening
    self.opening = nil
    for _, f in ipairs(waiting or {}) do
      f(err)
    end
  end
  require("pillion.diagnostics") -- before the start: it begins when the sidecar is ready
  process.start(function(failed)
    if failed then
      return settle(failed)
    end
    require("pillion.selection").follow()
    local function answered(err, r)
      if err then
        return settle(err.message)
      end
      if r.sessionId then
        self.id = r.sessionId
        M.by_id[self.id] = self
      end
      self:take_settings(r)
      compat.user_event("PillionSession", { session = self.id })
      settle()
    end
    if self.id then
      local method = self.replay and "session/load" or "session/resume"
      self.replay = nil
      process.request(method, with_settings({ sessionId = self.id, cwd = self.cwd, mcpServers = {} }), answered)
    else
      -- Updates may come before the answer: the id is not known then, so they cannot be missed, only be ours.
      process.request("session/new", with_settings({ cwd = self.cwd, mcpServers = {} }), answered)
    end
  end)
end

function Session:ended(err)
  for _, e in ipairs(self.entries) do
    e.closed = true
  end
  require("pillion.follow").turn_ended(self, err)
  M.check_disk()
  self:status()
  compat.user_event("PillionTurnEnd", { session = self.id, error = err })
end

-- Sends a prompt. While a turn runs it waits its turn in the sidecar.
---@param blocks table[] ACP content
---@param shown string what the conversation shows
---@param done? fun(err?: string, stop?: string)
function Session:prompt(blocks, shown, done)
  self:open(function(failed)
    if failed then
      log.tell("error", failed)
      return done and done(failed)
    end
    local last = self.entries[#self.entries]
    if last then
      last.closed = true
    end
    if self.plan and self.running == 0 then
      self.plan.closed = true
    end
    local entry = self:add({ kind = "user", text = shown, waiting = self.running > 0 or nil, closed = true })
    self.running = self.running + 1
    compat.user_event("PillionTurnStart", { session = self.id })
    entry.request = process.rpc:request("session/prompt", { sessionId = self.id, prompt = blocks }, function(err, r)
      self.running = math.max(0, self.running - 1)
      entry.request = nil
      if not self.turn or not entry.message or self.turn == entry.message then
        self.elsewhere = false -- the word that it is over may come later than the answer
      end
      if err then
        self:note("error", err.message)
      elseif r.stopReason == "cancelled" then
        self:note("info", "Stopped.")
      elseif r.stopReason ~= "end_turn" then
        self:note("warning", "Ended: " .. tostring(r.stopReason):gsub("_", " ") .. ".")
      end
      for _, e in ipairs(self.entries) do
        if e.waiting then
          e.waiting = nil
          tell_view(self, "changed", e)
          break
        end
      end
      self:ended(err and err.message)
      if done then
        done(err and err.message, r and r.stopReason)
      end
    end)
    self:status()
  end)
end

function Session:cancel()
  if self.id then
    process.notify("session/cancel", { sessionId = self.id })
  end
end

-- Calls a method for this session; says so when the sidecar is too old for it.
---@param method string
---@param params table
---@param callback pillion.Callback
function Session:call(method, params, callback)
  self:open(function(failed)
    if failed then
      return callback({ code = -32000, message = failed })
    end
    if method:sub(1, 1) == "_" and not process.can(method) then
      return callback({ code = -32601, message = "this sidecar cannot do that yet (" .. method .. "); update pillion" })
    end
    params.sessionId = self.id
    process.request(method, params, callback)
  end)
end

---@param id string
---@param value string
function Session:set_option(id, value)
  self:call("session/set_config_option", { configId = id, value = value }, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    self.options = r.configOptions or self.options
    self:status()
  end)
end

---@param cwd? string
---@return pillion.Session
function M.create(cwd)
  local s = new(cwd or vim.fn.getcwd())
  M.current = s
  return s
end

-- A stored session; with replay its conversation comes as updates.
---@param id string
---@param cwd string
---@param replay boolean
---@return pillion.Session
function M.stored(id, cwd, replay)
  local s = M.by_id[id]
  if not s then
    s = new(cwd)
    s.id, s.replay = id, replay
    M.by_id[id] = s
  end
  M.current = s
  return s
end

---@return pillion.Session
function M.get()
  return M.current or M.create()
end

process.on("exit", function(e)
  for _, s in pairs(M.by_id) do
    s.state = "lost"
    if s.elsewhere and not e.wanted then
      s:note("error", "Pillion ended in the middle of this turn" .. e.said .. ". What it had done is kept.")
    end
    s.elsewhere, s.running = false, 0
    s:status()
  end
end)

process.on("ready", function()
  for _, s in pairs(M.by_id) do
    if s.state == "lost" then
      s:open(function(err)
        s:note(err and "error" or "info", err and ("The session could not be taken up again: " .. err) or "Pillion was started again; the session goes on.")
      end)
    end
  end
end)

return M
